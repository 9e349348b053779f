//! The cases, natively; policies/cases_test.go runs them through the runtime.

use kv_retain::Retain;
use std::path::Path;

#[test]
fn cases() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    assert!(kvrt::testing::cases::run(&folder, "kv.retain", Retain::new) > 100);
}
