//! Runs compared with an ordered map.

use std::{collections::BTreeMap, ops::Bound, sync::Arc};

use proptest::{collection::vec, prelude::*};
use tempfile::TempDir;

use crate::Direction;

use super::{
    Cursor, Merged, Run, RunDirectory, RunEntry, RunWriter, Runs, format::FOOTER_LEN, key_hash,
    run::RunError,
};

const STORE: u64 = 53;

type Model = BTreeMap<(u32, Vec<u8>), Option<Vec<u8>>>;

struct Bed {
    place: TempDir,
    directory: RunDirectory,
}

impl Bed {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let directory = RunDirectory::new(place.path(), 1);
        Self { place, directory }
    }

    fn write(&self, model: &Model) -> RunEntry {
        let mut writer = RunWriter::begin(&self.directory, STORE, model.len()).unwrap();
        for ((tree, key), change) in model {
            writer.push(key_hash(*tree, key), *tree, key, change.as_deref()).unwrap();
        }
        writer.finish().unwrap()
    }

    fn open(&self, entry: RunEntry) -> Result<Run, RunError> {
        Run::open(&self.directory.path(entry.number), STORE, entry)
    }

    fn run(&self, model: &Model) -> Arc<Run> {
        Arc::new(self.open(self.write(model)).unwrap())
    }
}

fn models() -> impl Strategy<Value = Vec<Model>> {
    // Few keys, so that runs share some, and values from nothing to several blocks.
    let key = prop_oneof![
        vec(0_u8..3, 1..3),
        (0_u16..2000).prop_map(|n| format!("key:{n:05}").into_bytes()),
        vec(any::<u8>(), 300..600),
    ];
    let value = prop_oneof![
        8 => vec(any::<u8>(), 0..80).prop_map(Some),
        1 => vec(any::<u8>(), 4000..9000).prop_map(Some),
        3 => Just(None),
    ];
    let change = ((0_u32..4, key), value);
    vec(vec(change, 0..400).prop_map(|changes| changes.into_iter().collect()), 1..4)
}

/// The result of a scan of one tree.
fn scan(
    runs: &Runs,
    tree: u32,
    from: Bound<&[u8]>,
    direction: Direction,
) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    assert_eq!(runs.len(), 1);
    let mut found = Vec::new();
    for mut cursor in runs.seek(tree, from, direction).unwrap() {
        while let Some((key, change)) = cursor.found() {
            found.push((key.to_vec(), change.map(<[u8]>::to_vec)));
            cursor.step_in(tree, direction).unwrap();
        }
    }
    found
}

fn is_in(key: &[u8], from: Bound<&[u8]>, direction: Direction) -> bool {
    match (from, direction) {
        (Bound::Unbounded, _) => true,
        (Bound::Included(from), Direction::Forward) => key >= from,
        (Bound::Excluded(from), Direction::Forward) => key > from,
        (Bound::Included(from), Direction::Backward) => key <= from,
        (Bound::Excluded(from), Direction::Backward) => key < from,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_run_is_an_ordered_map(models in models(), probes in vec((0_u32..5, 0_u16..2000), 20)) {
        let (bed, model) = (Bed::new(), &models[0]);
        let run = bed.run(model);
        prop_assert!(run.verify().is_ok());
        let runs = Runs::new(vec![run]);
        for ((tree, key), change) in model {
            prop_assert_eq!(runs.find(*tree, key).unwrap(), Some(change.as_deref()));
        }
        for tree in 0..5 {
            prop_assert_eq!(runs.has_tree(tree).unwrap(), model.keys().any(|(of, _)| *of == tree));
        }
        prop_assert_eq!(runs.last_tree().unwrap(), model.keys().next_back().map(|(tree, _)| *tree));
        for (tree, n) in probes {
            let near = model.keys().nth(usize::from(n)).map(|(_, key)| key.clone());
            let key = near.unwrap_or_else(|| format!("key:{n:05}").into_bytes());
            let expected = model.get(&(tree, key.clone())).map(Option::as_deref);
            prop_assert_eq!(runs.find(tree, &key).unwrap(), expected);
            for from in [Bound::Included(&key[..]), Bound::Excluded(&key[..]), Bound::Unbounded] {
                for direction in [Direction::Forward, Direction::Backward] {
                    let of_tree = model.iter().filter(|((of, _), _)| *of == tree);
                    let all = of_tree.map(|((_, key), change)| (key.clone(), change.clone()));
                    let mut expected: Vec<_> =
                        all.filter(|(key, _)| is_in(key, from, direction)).collect();
                    if direction == Direction::Backward {
                        expected.reverse();
                    }
                    prop_assert_eq!(scan(&runs, tree, from, direction), expected);
                }
            }
        }
    }

    #[test]
    fn of_several_runs_the_newest_speaks(models in models()) {
        let bed = Bed::new();
        let runs = Runs::new(models.iter().map(|model| bed.run(model)).collect());
        let mut expected = Model::new();
        for model in models.iter().rev() {
            expected.extend(model.clone());
        }
        for ((tree, key), change) in &expected {
            prop_assert_eq!(runs.find(*tree, key).unwrap(), Some(change.as_deref()));
        }
        let (mut entries, mut merged) = (Merged::of(&runs).unwrap(), Model::new());
        let mut last = None;
        while let Some(entry) = entries.next().unwrap() {
            let place = (entry.tree, entry.key.to_vec());
            prop_assert!(last.replace(place.clone()) < Some(place.clone()), "the order");
            merged.insert(place, entry.change.map(<[u8]>::to_vec));
        }
        prop_assert_eq!(merged, expected);
    }
}

fn model(count: u32) -> Model {
    (0..count).map(|n| ((2, format!("key:{n:08}").into_bytes()), Some(vec![7; 50]))).collect()
}

#[test]
fn each_byte_that_changes_is_noticed() {
    let bed = Bed::new();
    let entry = bed.write(&model(300));
    let path = bed.directory.path(entry.number);
    let sound = std::fs::read(&path).unwrap();
    for at in 0..sound.len() {
        let mut bytes = sound.clone();
        bytes[at] ^= 0x10;
        std::fs::write(&path, &bytes).unwrap();
        let verified = bed.open(entry).map(|run| run.verify());
        // Between the index and the filter there may be zeros that nobody reads.
        let is_gap = bytes[at] == 0x10 && matches!(verified, Ok(Ok(())));
        assert!(is_gap || !matches!(verified, Ok(Ok(()))), "byte {at} of {}", sound.len());
    }
    std::fs::write(&path, &sound[..sound.len() - 1]).unwrap();
    assert!(matches!(bed.open(entry), Err(RunError::Damaged { .. })), "it was cut short");
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(bed.open(entry), Err(RunError::Damaged { .. })), "it is gone");
}

#[test]
fn a_run_of_another_store_or_number_is_refused() {
    let bed = Bed::new();
    let (one, other) = (bed.write(&model(3)), bed.write(&model(4)));
    let (from, to) = (bed.directory.path(other.number), bed.directory.path(one.number));
    assert!(Run::open(&to, STORE + 1, one).is_err());
    std::fs::copy(from, to).unwrap();
    assert!(bed.open(one).is_err());
}

#[test]
fn a_run_that_is_not_finished_leaves_no_file() {
    let bed = Bed::new();
    let mut writer = RunWriter::begin(&bed.directory, STORE, 1).unwrap();
    writer.push(key_hash(2, b"key"), 2, b"key", None).unwrap();
    drop(writer);
    let runs = std::fs::read_dir(bed.place.path().join(super::RUNS_DIRECTORY)).unwrap();
    assert_eq!(runs.count(), 0);
}

#[test]
fn what_the_base_does_not_name_is_needless() {
    let bed = Bed::new();
    let entries = [bed.write(&model(1)), bed.write(&model(2)), bed.write(&model(3))];
    for number in bed.directory.needless(&entries[1..2]).unwrap() {
        bed.directory.remove(number);
    }
    let is_there = entries.map(|entry| bed.directory.path(entry.number).exists());
    assert_eq!(is_there, [false, true, false]);
    assert_eq!(bed.directory.files().unwrap().len(), 1);
}

#[test]
fn behind_a_damaged_block_the_rest_is_saved() {
    let bed = Bed::new();
    let entry = bed.write(&model(1000));
    let path = bed.directory.path(entry.number);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[10_000] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let runs = Runs::new(vec![Arc::new(bed.open(entry).unwrap())]);
    assert!(Cursor::first(runs.iter().next().unwrap()).is_ok(), "the first block is sound");
    let mut entries = Merged::rescue(&runs, 2);
    let mut count = 0;
    while entries.next().unwrap().is_some() {
        count += 1;
    }
    assert!((900..1000).contains(&count), "{count}");
    assert_eq!(entries.into_damage().len(), 1);
    assert!(bytes.len() > FOOTER_LEN);
}
