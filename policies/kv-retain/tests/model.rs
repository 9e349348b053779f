//! Random envelopes, judged by the guest and by a model that is as plain as the rules:
//! it keeps lists and sorts them.

use kv_retain::Retain;
use kvrt::testing::{handle, init};

#[derive(Clone, Debug)]
struct Directive {
    start: u64,
    output: bool,
    priority: u64,
    sound: bool,
}

#[derive(Clone, Debug)]
struct Claim {
    scope: Option<&'static str>,
    directives: Vec<Directive>,
}

/// What the rules say: accepted, with how many directives, or not.
fn model(claims: &[Claim], strict: bool) -> Vec<Option<usize>> {
    let rises = |list: &[Directive]| {
        let mut sorted: Vec<_> = list.iter().collect();
        sorted.sort_by_key(|d| (d.output, d.start)); // stable
        sorted.windows(2).any(|w| w[1].priority > w[0].priority)
    };
    let (mut all, mut count, mut scope, mut out) = (Vec::new(), 0, None, Vec::new());
    let mut in_vain = 0;
    for (i, claim) in claims.iter().enumerate() {
        let room = 128 - count;
        let kept: Vec<_> = claim.directives.iter().take(room).cloned().collect();
        let together = [all.clone(), kept.clone()].concat();
        let looked_at = i < 16
            && (kept.len() == claim.directives.len() || !strict && !kept.is_empty())
            && in_vain + kept.len() <= 512;
        let sound = looked_at
            && kept.iter().all(|d| d.sound)
            && !rises(&kept)
            && scope.map_or(true, |s| s == claim.scope)
            && !(strict && rises(&together));
        if sound {
            all = together;
            count += kept.len();
            scope = Some(claim.scope);
        }
        if looked_at && !sound {
            in_vain += kept.len();
        }
        out.push(sound.then(|| kept.len()));
    }
    out
}

/// A small generator of numbers below `n`, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

fn envelope(r: &mut Random) -> Vec<Claim> {
    let long = r.below(3) == 0;
    let mut at = 0;
    let most = if r.below(8) == 0 { 20 } else { 5 };
    (0..1 + r.below(most))
        .map(|_| {
            let scope = if r.below(10) == 0 { Some("s") } else { None };
            let n = if long { r.below(90) } else { r.below(6) };
            let wild = r.below(3) == 0;
            let directives = (0..n)
                .map(|_| {
                    at = if wild { r.below(300) } else { at + r.below(3) };
                    let (output, last) = (r.below(40) == 0, r.below(50) == 0);
                    let falling = if output || last { 0 } else { 100u64.saturating_sub(at / 3) };
                    Directive {
                        start: if last { u64::MAX } else { at },
                        output,
                        priority: if r.below(400) == 0 { r.below(101) } else { falling },
                        sound: r.below(900) != 0,
                    }
                })
                .collect();
            Claim { scope, directives }
        })
        .collect()
}

fn action(c: &Claim) -> String {
    let directive = |d: &Directive| match (d.sound, d.output) {
        (false, _) => r#"{"priority":1,"end":0}"#.to_string(),
        (_, true) => format!(r#"{{"covers_output":true,"priority":{}}}"#, d.priority),
        _ => format!(r#"{{"start":{},"priority":{}}}"#, d.start, d.priority),
    };
    let scope = c.scope.map_or(String::new(), |s| format!(r#""scope":"{}","#, s));
    let directives: Vec<_> = c.directives.iter().map(directive).collect();
    format!(
        r#"{{"action_id":"a","action_type":"kv.retain","action_version":"1.0","payload":{{{}"directives":[{}]}}}}"#,
        scope,
        directives.join(",")
    )
}

#[test]
fn agrees_with_the_model() {
    let mut r = Random(1);
    let (mut accepted, mut rejected, mut cut) = (0, 0, 0);
    for _ in 0..120 {
        let claims = envelope(&mut r);
        let texts: Vec<String> = claims.iter().map(action).collect();
        let views: Vec<&str> = texts.iter().map(String::as_str).collect();
        for (strict, mode) in [(true, r#"{"mode":"strict"}"#), (false, r#"{"mode":"lenient"}"#)] {
            let guest = init(Some(mode), Retain::new).unwrap();
            for (i, want) in model(&claims, strict).into_iter().enumerate() {
                let got = handle(&guest, &views, i);
                assert_eq!(got.status == "ACCEPTED", want.is_some(), "{} action {} of {:?}: {}", mode, i, claims, got.detail);
                let whole = claims[i].directives.len();
                match (want, got.body) {
                    (None, _) => rejected += 1,
                    (Some(n), None) => {
                        assert_eq!(n, whole);
                        accepted += 1;
                    }
                    (Some(n), Some(body)) => {
                        assert!(n < whole);
                        assert_eq!(body.matches("\"priority\"").count(), n);
                        cut += 1;
                    }
                }
            }
        }
    }
    assert!(accepted > 200 && rejected > 100 && cut > 10, "{} accepted, {} rejected, {} cut", accepted, rejected, cut);
}
