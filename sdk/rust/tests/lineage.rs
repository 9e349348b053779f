//! What a policy is told about sessions and workers.

use kvrt::testing::{host, Fleet, Tree};
use kvrt::{abi::*, Block, Context, Rank};

fn context() -> Context<'static> {
    Context::new(&[])
}

fn fleet() -> Fleet {
    let path = |session: &str, worker, rank, hashes: &[u64]| (session.to_string(), worker, rank, hashes.to_vec());
    Fleet {
        paths: vec![
            path("s", 7, Some(0), &[1, 2, 3, 4]),
            path("s", 7, Some(0), &[1, 2, 9]),
            path("s", 8, None, &[1]),
            path("t", 7, Some(0), &[1]),
        ],
        workers: vec![(7, Some(0), Some("decode".to_string()), Some("tcp://h:1".to_string())), (8, None, None, None)],
        ..Fleet::default()
    }
}

#[test]
fn sessions() {
    host::reset(host::Record { fleet: fleet(), ..Default::default() });
    let (seven, eight) = (Tree::new("7"), Tree::new("8"));
    let on = Rank { id: seven.value(), dp_rank: Some(0) };
    let c = context();

    let l = c.lineage("s", on).unwrap();
    assert_eq!((l.len(), l.blocks(), l.hash_kind()), (2, 7, HASH_KIND_ENGINE));
    assert_eq!(l.paths().collect::<Vec<_>>(), [&[1, 2, 3, 4][..], &[1, 2, 9]]);
    assert_eq!(l.longest(), [1, 2, 3, 4]);
    let from = c.lineage_from("s", on, 3).unwrap();
    assert_eq!(from.paths().collect::<Vec<_>>(), [[3, 4]]);
    let own = c.exclusive("s", on).unwrap();
    assert_eq!(own.paths().collect::<Vec<_>>(), [&[2, 3, 4][..], &[9]]);
    assert_eq!(l.longest(), [1, 2, 3, 4]); // an answer stays

    let none = c.lineage("s", Rank { id: eight.value(), dp_rank: Some(0) }).unwrap();
    assert!(none.is_empty() && none.longest().is_empty());
    assert_eq!(c.lineage_from("s", on, 5).err(), Some(REASON_UNKNOWN_ANCHOR));
    assert_eq!(c.lineage("u", on).err(), Some(REASON_UNKNOWN_SESSION));

    let fronts: Vec<_> = c.frontiers("s").unwrap().collect();
    assert_eq!(fronts.iter().map(|f| (f.on().dp_rank, f.hash(), f.depth())).collect::<Vec<_>>(), [(Some(0), 4, 4), (Some(0), 9, 3), (None, 1, 1)]);
    assert_eq!(c.lineage("s", fronts[2]).unwrap().longest(), [1]);
    assert_eq!(c.block(2), Ok(Block { parent: Some(1), hash_kind: HASH_KIND_ENGINE, frontiers: 0, children: 2 }));
    assert_eq!(c.block(5), Err(REASON_NOT_FOUND));

    host::reset(host::Record { fleet: Fleet { index_off: true, ..fleet() }, ..Default::default() });
    assert_eq!(c.lineage_from("u", on, 5).err(), Some(REASON_INDEX_OFF));
    assert_eq!((c.frontiers("s").err(), c.block(2)), (Some(REASON_INDEX_OFF), Err(REASON_INDEX_OFF)));
}

#[test]
fn workers() {
    host::reset(host::Record { fleet: fleet(), ..Default::default() });
    let (seven, text) = (Tree::new("7"), Tree::new("\"7\""));
    let c = context();
    let w = c.worker(Rank { id: seven.value(), dp_rank: Some(0) }).unwrap();
    assert_eq!((w.worker_type(), w.source_control_endpoint(), w.matched_gpu()), (Some("decode"), Some("tcp://h:1"), None));
    assert_eq!(c.worker(w).unwrap().id().u64(), Some(7));
    assert!(c.worker(Rank { id: seven.value(), dp_rank: None }).is_none());
    assert!(c.worker(Rank { id: text.value(), dp_rank: Some(0) }).is_none());
    assert_eq!(c.workers().unwrap().map(|w| (w.id().u64(), w.dp_rank())).collect::<Vec<_>>(), [(Some(7), Some(0)), (Some(8), None)]);
}
