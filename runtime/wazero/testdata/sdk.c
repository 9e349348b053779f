// The smallest handler through the SDK: accepts everything.
#include "kvrt.h"

static kv_answer judge(kv_action a)
{
    (void)a;
    return kv_accept();
}

KVRT_HANDLER(judge)
