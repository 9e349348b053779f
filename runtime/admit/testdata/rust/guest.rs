// A guest that uses the standard library: formatting, floating-point text, hash
// tables, trees, sorting.

use std::collections::{BTreeMap, HashMap};

#[no_mangle]
pub extern "C" fn run(n: i32) -> i64 {
    let mut sums: HashMap<String, f64> = HashMap::new();
    let mut lists: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    let mut sum = 0i64;
    for i in 0..n {
        let key = format!("k{}-{:?}", i % 17, (i as f64) / 3.0);
        *sums.entry(key.clone()).or_insert(0.0) += i as f64 * 0.1;
        lists.entry(key).or_default().push(i as u32);
    }
    for (key, list) in &lists {
        let all: i64 = list.iter().map(|x| *x as i64).sum();
        sum = sum.wrapping_mul(31).wrapping_add(key.len() as i64 + all);
    }
    let mut sorted: Vec<_> = sums.into_iter().collect();
    sorted.sort_by(|a, b| b.1.partial_cmp(&a.1).unwrap().then(a.0.cmp(&b.0)));
    for (key, value) in sorted {
        let back = format!("{}{:.3}", value as i64 % 3, value).parse::<f64>();
        sum = sum.wrapping_mul(33).wrapping_add(back.map_or(key.len() as i64, |x| x as i64));
    }
    sum
}

#[no_mangle]
pub extern "C" fn recurse(n: i32) -> i32 {
    let mut text = String::new();
    if n > 0 {
        text = format!("{}", recurse(n - 1));
    }
    text.len() as i32
}
