// The policy natively, with the sanitizers; policies/cases has every rule.
#include "../retain_session.c"
#include "stub.h"

#define ABOUT "\"request_id\": \"r1\", \"selected\": {\"worker_id\": 7}, \"session\": {\"session_id\": \"s1\"}"
#define PROMPT "\"block_hashes\": [1, 2, 3, 4], \"hash_kind\": \"engine\", \"block_size\": 16"
#define BEGIN "{\"protocol_version\":\"\",\"message_id\":\"\",\"actions\":[{\"action_id\":\"s1-7-r1\",\"action_type\":\"kv.retain\",\"action_version\":\"1.0\",\"payload\":"

int main(void)
{
    static uint64_t many[STUB_BLOCKS];
    for (uint64_t i = 0; i < STUB_BLOCKS; i++)
        many[i] = 100 + i;
    CHECK(stub_init(0).status == KVRT_STATUS_ACCEPTED);
    CHECK_TEXT(stub_formulate("{" ABOUT "," PROMPT "}").body, ""); // an unknown session
    stub_path("s1", 7, KV_NO_RANK, (const uint64_t[]){1, 2, 3}, 3);
    stub_path("s1", 7, KV_NO_RANK, (const uint64_t[]){1, 2, 9, UINT64_MAX}, 4);
    stub_path("s2", 7, KV_NO_RANK, many, STUB_BLOCKS);
    CHECK_TEXT(stub_formulate("{" ABOUT "," PROMPT "}").body, BEGIN "{\"scope\":\"s1\",\"directives\":[{\"start\":0,\"end\":48,\"priority\":50,\"duration\":300.0}]}}]}");
    CHECK_TEXT(stub_formulate("{" ABOUT "}").body, "");
    CHECK_TEXT(stub_formulate("{\"request_id\": \"r1\", \"selected\": {\"worker_id\": 7}," PROMPT "}").body, ""); // no session

    CHECK(stub_init("{\"variant\": \"blocks\"}").status == KVRT_STATUS_ACCEPTED);
    CHECK_TEXT(stub_formulate("{" ABOUT "}").body, BEGIN "{\"execute_at\":\"request_completion\",\"include_current_request\":false,"
        "\"block_hashes\":[\"1\",\"2\",\"3\",\"9\",\"18446744073709551615\"],\"priority\":50,\"ttl_seconds\":300.0}}]}");
    stub_fleet.index_off = true;
    CHECK_TEXT(stub_formulate("{" ABOUT "}").body, "");
    CHECK_TEXT(stub_init("{\"variant\": 1}").detail, "variant must be \"token_ranges\", \"blocks\" or \"request_blocks\"");
    return stub_done();
}
