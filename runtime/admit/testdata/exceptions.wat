;; Exceptions: a tag, exported.
(module (tag (export "oops") (param i32)))
