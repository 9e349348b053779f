// The smallest handler through the SDK that calls a host function.
#include "kvrt.h"

static kv_answer judge(kv_action a)
{
    (void)a;
    return kv_now() ? kv_accept() : kv_reject(KVRT_REASON_INVALID_PAYLOAD, "no clock");
}

KVRT_HANDLER(judge)
