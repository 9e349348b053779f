// handler.h: what kv-evict and kv-prefetch judge alike: versions, the shape of an action,
// and what becomes of one that this host cannot carry out.
#ifndef HANDLER_H
#define HANDLER_H

#include "kvrt.h"

// What a sender may make a handler look at. Beyond that it says so instead of running
// out of fuel, which would cost the instance.
#define MAX_KEYS 256   // of a payload
#define MAX_VERSION 64 // bytes
#define MAX_BLOCKS 24576 // of an action: what a host function does with one costs 64

#define invalid(...) kv_reject(KVRT_REASON_INVALID_PAYLOAD, __VA_ARGS__)

// read_unable reads the only parameter: whether what cannot be done here is passed on.
static kv_answer read_unable(kv_value parameters, const char *guest, bool *pass)
{
    if (!kv_has(parameters) || kv_null(parameters))
        return kv_accept();
    if (!kv_map(parameters))
        return kv_refuse("parameters must be an object, not ", kv_kind(parameters));
    for (uint32_t i = 0; i < parameters.len; i++) {
        kv_str key = kv_text(kv_key(parameters, i)), rule = kv_text(kv_val(parameters, i));
        if (!kv_is(key, "unable"))
            return kv_refuse("unknown parameter ", key, ": ", guest, " knows unable");
        if (!kv_is(rule, "pass") && !kv_is(rule, "reject"))
            return kv_refuse("unable must be \"pass\" or \"reject\"");
        *pass = kv_is(rule, "pass");
    }
    return kv_accept();
}

// decimal reads the ASCII digits of v from *at on; false when there is none. Values past
// 9 are all 10: only 0 and 1 are told apart.
static bool decimal(kv_str v, uint32_t *at, uint32_t *value)
{
    uint32_t start = *at;
    for (*value = 0; *at < v.len && v.ptr[*at] >= '0' && v.ptr[*at] <= '9'; ++*at)
        *value = *value > 0 ? 10 : (uint32_t)(v.ptr[*at] - '0');
    return *at > start;
}

// supported takes digits, optionally a dot and more digits, of major version 1. It warns
// where the sender should know better.
static bool supported(kv_str version, const char *type)
{
    if (!version.ptr) {
        kv_warn(type, " without an action_version: taken as 1.0");
        return true;
    }
    uint32_t at = 0, major = 0, minor = 0;
    bool ok = version.len <= MAX_VERSION && decimal(version, &at, &major) && major == 1;
    if (ok && at < version.len)
        ok = version.ptr[at++] == '.' && decimal(version, &at, &minor) && at == version.len;
    if (ok && minor != 0)
        kv_warn(type, " action_version ", version, ": taken as 1.0");
    return ok;
}

// judge_head judges an action as far as its fields are not its type's own; 0: it is sound.
static kv_answer judge_head(kv_action a, const char *type)
{
    if (!kv_is(a.version, "1.0") && !supported(a.version, type))
        return kv_reject(KVRT_REASON_UNSUPPORTED_ACTION_VERSION, "unsupported ", type, " action_version ", a.version);
    if (!kv_map(a.payload))
        return kv_reject(KVRT_REASON_MALFORMED_ACTION, "payload must be an object, not ", kv_kind(a.payload));
    if (a.payload.len > MAX_KEYS)
        return kv_reject(KVRT_REASON_LIMIT_EXCEEDED, "payload has ", a.payload.len, " keys, at most ", MAX_KEYS, " are allowed");
    return kv_accept();
}

// cannot tells whether a host function refused since this host is not fit for what it was
// asked, and not since the action is wrong.
static bool cannot(kv_answer refused)
{
    return refused == -(kv_answer)KVRT_REASON_UNAVAILABLE || refused == -(kv_answer)KVRT_REASON_NOT_FOUND;
}

#endif
