// A validator of JSON, as branchy as guests come, over a text that it makes up
// itself; and a hash table that drops what it has seen.
//
//   clang-19 --target=wasm32 -O2 -ffreestanding -nostdlib -Wl,--no-entry,--strip-all -o json.wasm json.c

typedef unsigned char byte;
typedef unsigned int u32;
typedef unsigned long long u64;

static byte text[16384];
static u32 size;

static void put(const char *s) {
	while (*s)
		text[size++] = (byte)*s++;
}

static void write_text(void) {
	size = 0;
	put("[");
	for (u32 i = 0; size < sizeof text - 256; i++) {
		put(i ? ",\n  " : "\n  ");
		put("{\"type\": \"kv.prefetch\", \"id\": ");
		char digits[12], *d = digits + 11;
		*d = 0;
		u32 n = i * 2654435761u;
		do
			*--d = (char)('0' + n % 10);
		while (n /= 10);
		put(d);
		put(", \"scale\": -1.25e-3, \"blocks\": [1, 22, 333, 4444], \"note\": \"a \\\"quoted\\\" \\u00fc\", \"last\": ");
		put(i % 3 == 0 ? "null}" : i % 3 == 1 ? "true}" : "false}");
	}
	put("\n]");
}

static const byte *p, *end;

static void space(void) {
	while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
		p++;
}

static int digits(void) {
	const byte *start = p;
	while (p < end && *p >= '0' && *p <= '9')
		p++;
	return p > start;
}

static int literal(const char *s) {
	while (*s)
		if (p == end || *p++ != (byte)*s++)
			return 0;
	return 1;
}

static int string(void) {
	while (p < end) {
		byte c = *p++;
		if (c == '"')
			return 1;
		if (c < 0x20)
			return 0;
		if (c != '\\')
			continue;
		if (p == end)
			return 0;
		switch (*p++) {
		case '"': case '\\': case '/': case 'b': case 'f': case 'n': case 'r': case 't':
			break;
		case 'u':
			for (int i = 0; i < 4; i++, p++)
				if (p == end || !((*p >= '0' && *p <= '9') || ((*p | 32) >= 'a' && (*p | 32) <= 'f')))
					return 0;
			break;
		default:
			return 0;
		}
	}
	return 0;
}

static int number(void) {
	if (*p == '-')
		p++;
	if (p < end && *p == '0')
		p++;
	else if (!digits())
		return 0;
	if (p < end && *p == '.') {
		p++;
		if (!digits())
			return 0;
	}
	if (p < end && (*p | 32) == 'e') {
		p++;
		if (p < end && (*p == '+' || *p == '-'))
			p++;
		return digits();
	}
	return 1;
}

static int value(int depth) {
	space();
	if (p == end || depth == 0)
		return 0;
	switch (*p) {
	case '{':
	case '[': {
		byte close = *p == '{' ? '}' : ']';
		p++;
		space();
		if (p < end && *p == close)
			return p++, 1;
		for (;;) {
			if (close == '}') {
				space();
				if (p == end || *p++ != '"' || !string())
					return 0;
				space();
				if (p == end || *p++ != ':')
					return 0;
			}
			if (!value(depth - 1))
				return 0;
			space();
			if (p == end)
				return 0;
			if (*p == close)
				return p++, 1;
			if (*p++ != ',')
				return 0;
		}
	}
	case '"':
		p++;
		return string();
	case 't':
		return literal("true");
	case 'f':
		return literal("false");
	case 'n':
		return literal("null");
	}
	return number();
}

__attribute__((export_name("json"))) int json(int n) {
	if (!size)
		write_text();
	int valid = 0;
	while (n-- > 0) {
		p = text;
		end = text + size;
		valid += value(32);
		space();
		valid += p == end;
	}
	return valid;
}

static u64 table[4096];

__attribute__((export_name("dedupe"))) int dedupe(int n) {
	int kept = 0;
	while (n-- > 0) {
		for (u32 i = 0; i < 4096; i++)
			table[i] = 0;
		u64 h = 88172645463325252ull;
		for (u32 i = 0; i < 2048; i++) {
			h ^= h << 13, h ^= h >> 7, h ^= h << 17;
			u64 key = (h & 0x3ff) * 0x9e3779b97f4a7c15ull + 1;
			u32 at = (u32)(key >> 32) & 4095;
			while (table[at] && table[at] != key)
				at = (at + 1) & 4095;
			if (!table[at])
				table[at] = key, kept++;
		}
	}
	return kept;
}
