//! retain-on-tool-call: a policy that lets the selected worker keep the request's blocks
//! while a tool runs. README.md says every rule with its reason.
#![cfg_attr(target_arch = "wasm32", no_std)]

use kvrt::{Answer, Context, Node, Policy, Text, Value, Writer};

/// The most seconds that are asked for: 30 days.
const MAX_TTL: f64 = 2_592_000.0;
// What a request's own hint may make this policy look at for a TTL: its sender decides how
// much there is.

/// Actions; in those behind there is none.
const MAX_ACTIONS: usize = 64;
/// Keys of a map; in one that has more there is none.
const MAX_KEYS: usize = 64;

/// The guest.
pub struct Retain {
    blocks: bool, // the payload over blocks, else over token ranges
    ttl: Option<f64>,
    priority: u64,
    triggers: u32, // a bit for each of the TRIGGER_ constants
    min_tokens: u64,
    scoped: bool,
}

fn refuse<T>(why: &str) -> Result<T, Text> {
    Err(Text::new(format_args!("{}", why)))
}

impl Retain {
    /// Reads the parameters.
    pub fn new(parameters: Value) -> Result<Retain, Text> {
        let mut r = Retain { blocks: false, ttl: None, priority: 50, triggers: 1 << kvrt::abi::TRIGGER_TOOL_RESULT, min_tokens: 0, scoped: true };
        if !parameters.is_absent() && !parameters.is_null() && !parameters.is_map() {
            return Err(Text::new(format_args!("parameters must be an object, not {}", parameters.kind())));
        }
        for (key, v) in parameters.entries() {
            match key.str().unwrap_or_default() {
                "variant" => match v.str() {
                    Some("token_ranges") => r.blocks = false,
                    Some("blocks") => r.blocks = true,
                    _ => return refuse("variant must be \"token_ranges\" or \"blocks\""),
                },
                "ttl_seconds" => match seconds(v) {
                    None => return refuse("ttl_seconds must be a number above 0, at most 2592000"),
                    ttl => r.ttl = ttl,
                },
                "priority" => match v.u64() {
                    Some(n) => r.priority = n,
                    None => return refuse("priority must be an integer in [0, 2^64)"),
                },
                "triggers" => match triggers(v) {
                    Some(set) => r.triggers = set,
                    None => return refuse("triggers must be a list of at least one of user_message, tool_result and other"),
                },
                "min_tokens" => match v.u64() {
                    Some(n) => r.min_tokens = n,
                    None => return refuse("min_tokens must be an integer in [0, 2^64)"),
                },
                "scope" => match v.str() {
                    Some("session") => r.scoped = true,
                    Some("none") => r.scoped = false,
                    _ => return refuse("scope must be \"session\" or \"none\""),
                },
                key => {
                    let known = "variant, ttl_seconds, priority, triggers, min_tokens and scope";
                    return Err(Text::new(format_args!("unknown parameter \"{}\": retain-on-tool-call knows {}", key, known)));
                }
            }
        }
        if !r.blocks && (r.priority < 1 || r.priority > 100) {
            return refuse("priority must be in [1, 100] for token_ranges");
        }
        Ok(r)
    }

    /// Whether the context says that a tool will run next. What it does not say counts as
    /// no.
    fn expected(&self, c: Context) -> bool {
        c.tools_declared() == Some(true)
            && c.session_final() == Some(false)
            && self.triggers >> c.input_trigger() & 1 != 0
            && (self.min_tokens == 0 || c.prompt_tokens().map_or(false, |n| n >= self.min_tokens))
    }

    fn payload(&self, w: &mut Writer, session: &str, ttl: f64) -> Node {
        if self.blocks {
            let at = w.str("request_completion");
            let hashes = w.hashes(&[]);
            let entries = [("execute_at", at), ("include_current_request", w.bool(true)), ("block_hashes", hashes), ("priority", w.u64(self.priority)), ("ttl_seconds", w.f64(ttl))];
            return w.map(&entries);
        }
        let scope = if self.scoped { w.str(session) } else { w.null() };
        let directives = w.array_with(1, |w, _| {
            let entries = [("start", w.u64(0)), ("end", w.null()), ("priority", w.u64(self.priority)), ("duration", w.f64(ttl))];
            w.map(&entries)
        });
        w.map(&[("scope", scope), ("directives", directives)])
    }
}

fn triggers(list: Value) -> Option<u32> {
    let mut set = 0;
    for t in list.elems() {
        set |= 1 << match t.str()? {
            "user_message" => kvrt::abi::TRIGGER_USER_MESSAGE,
            "tool_result" => kvrt::abi::TRIGGER_TOOL_RESULT,
            "other" => kvrt::abi::TRIGGER_OTHER,
            _ => return None,
        };
    }
    if set == 0 || !list.is_array() {
        return None;
    }
    Some(set)
}

/// A TTL: a finite number above 0, at most MAX_TTL.
fn seconds(v: Value) -> Option<f64> {
    let s = match v.u64() {
        Some(n) => n as f64,
        None => v.f64()?,
    };
    if s > 0.0 && s <= MAX_TTL {
        Some(s)
    } else {
        None
    }
}

/// The TTL that came with the request: that of its first kv.retain, which over token
/// ranges is the first directive's.
fn asked(hint: Value) -> Option<f64> {
    let retain = get(hint, "actions").elems().take(MAX_ACTIONS).find(|a| get(*a, "action_type").str() == Some("kv.retain"))?;
    let payload = get(retain, "payload");
    seconds(get(payload, "ttl_seconds")).or_else(|| seconds(get(get(payload, "directives").elem(0), "duration")))
}

fn get<'a>(map: Value<'a>, key: &str) -> Value<'a> {
    if map.len() > MAX_KEYS {
        return Value::ABSENT;
    }
    map.get(key)
}

impl Policy for Retain {
    fn formulate(&self, c: Context) -> Answer {
        let session = match c.session_id() {
            Some(s) if self.expected(c) => s,
            _ => return Answer::Accept,
        };
        let ttl = match self.ttl.or_else(|| asked(c.request_hint())) {
            Some(ttl) => ttl,
            None => return Answer::Accept,
        };
        let mut w = Writer::actions();
        w.action(None, Some("kv.retain"), Some("1.0"), |w| self.payload(w, session, ttl));
        Answer::Write(w)
    }
}

kvrt::guest!(Retain: policy; init = Retain::new);
