// The policy natively, with the sanitizers; policies/cases has every rule.
#include "../evict_on_final.c"
#include "stub.h"

#define FINAL(more) "{\"request_id\": \"r1\", \"selected\": {\"worker_id\": 7, \"dp_rank\": 1}, \"session\": {\"session_id\": \"s1\", \"session_final\": true" more "}}"

int main(void)
{
    CHECK(stub_init("{\"max_blocks\": 2}").status == KVRT_STATUS_ACCEPTED);
    CHECK_TEXT(stub_formulate(FINAL("")).body, "");
    stub_path("s2", 7, 1, (const uint64_t[]){1}, 1);
    stub_path("s1", 7, 1, (const uint64_t[]){1, 2, 3, 4}, 4);
    CHECK_TEXT(stub_formulate(FINAL("")).body, "{\"protocol_version\":\"\",\"message_id\":\"\",\"actions\":[{\"action_id\":\"s1-7-r1\",\"action_type\":\"kv.evict\",\"action_version\":\"1.0\","
        "\"payload\":{\"execute_at\":\"request_completion\",\"include_current_request\":false,\"block_hashes\":[\"3\",\"4\"]}}]}");
    CHECK_TEXT(stub_formulate(FINAL(", \"parent_session_id\": \"s0\"")).body, "");
    CHECK_TEXT(stub_init("{\"x\": 1}").detail, "unknown parameter \"x\": evict-on-final knows min_blocks and max_blocks");
    return stub_done();
}
