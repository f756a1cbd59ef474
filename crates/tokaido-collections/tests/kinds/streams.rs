//! Streams, compared with maps of entries, groups and pending entries.

use std::{collections::BTreeMap, ops::ControlFlow};

use super::Modelled;
use proptest::prelude::*;
use tokaido_collections::{Consumer, OpenGroup, Pending, State, Stream, StreamId, Trim};
use tokaido_store::{DatabaseId, Direction, ReadTransaction, WriteTransaction};

struct Streams;

/// A stream's contents; `None` if there is no stream.
type Model = Option<StreamModel>;

#[derive(Clone, Debug, Default)]
struct StreamModel {
    entries: BTreeMap<StreamId, Vec<Vec<u8>>>,
    added: u64,
    last_id: StreamId,
    max_deleted_id: StreamId,
    groups: BTreeMap<Vec<u8>, GroupModel>,
}

#[derive(Clone, Debug, Default)]
struct GroupModel {
    last_id: StreamId,
    consumers: Vec<Vec<u8>>,
    /// The consumer and the number of deliveries.
    pending: BTreeMap<StreamId, (Vec<u8>, u64)>,
}

#[derive(Clone, Debug)]
enum Operation {
    /// An entry some places after the last one.
    Append(u64, Vec<Vec<u8>>),
    /// This many entries: enough for several batches.
    AppendMany(u16),
    Delete(Vec<u64>),
    TrimToLen(u64, u64),
    TrimUpTo(u64),
    CreateGroup(u8, u64),
    DestroyGroup(u8),
    /// Rereads from an id.
    SetId(u8, u64),
    Deliver(u8, u8, usize, bool),
    Acknowledge(u8, Vec<u64>),
    Claim(u8, u8, u64),
    DeleteConsumer(u8, u8),
}

fn id(ms: u64) -> StreamId {
    StreamId { ms: ms / 3, seq: ms % 3 }
}

/// The id that is `places` later in the numbering of [`id`].
fn later(last: StreamId, places: u64) -> StreamId {
    id(last.ms * 3 + last.seq + places)
}

/// The ids that numbers stand for: those of existing items, by index, or ones that may not exist.
fn chosen<'i>(numbers: &[u64], there: impl Iterator<Item = &'i StreamId>) -> Vec<StreamId> {
    let there: Vec<_> = there.collect();
    let choose = |n: &u64| match n {
        0..30 if !there.is_empty() => *there[*n as usize % there.len()],
        n => id(*n),
    };
    numbers.iter().map(choose).collect()
}

/// Some are empty or longer than others.
fn name(n: u8) -> Vec<u8> {
    vec![b'n'; usize::from(n)]
}

fn ids() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(0u64..40, 0..6)
}

impl Modelled for Streams {
    type Value = Model;
    type Operation = Operation;

    fn operation() -> impl Strategy<Value = Operation> {
        use Operation::*;
        let fields = prop::collection::vec(prop::collection::vec(any::<u8>(), 0..4), 1..3)
            .prop_map(|fields| fields.iter().flat_map(|f| [f.clone(), f.clone()]).collect());
        let (group, consumer) = (0u8..2, 0u8..3);
        let acknowledged = prop::bool::weighted(0.2);
        prop_oneof![
            8 => (1u64..5, fields).prop_map(|(places, fields)| Append(places, fields)),
            1 => (1000u16..1500).prop_map(AppendMany),
            3 => ids().prop_map(Delete),
            1 => (0u64..9, 0u64..9).prop_map(|(len, count)| TrimToLen(len, count)),
            1 => (0u64..40).prop_map(TrimUpTo),
            4 => (group.clone(), 0u64..6).prop_map(|(group, id)| CreateGroup(group, id)),
            1 => group.clone().prop_map(DestroyGroup),
            1 => (group.clone(), 0u64..40).prop_map(|(group, id)| SetId(group, id)),
            9 => (group.clone(), consumer.clone(), prop_oneof![8 => 1usize..9, 1 => Just(5000)], acknowledged)
                .prop_map(|(g, c, count, acknowledged)| Deliver(g, c, count, acknowledged)),
            6 => (group.clone(), ids()).prop_map(|(group, ids)| Acknowledge(group, ids)),
            3 => (group.clone(), consumer.clone(), 0u64..40).prop_map(|(g, c, id)| Claim(g, c, id)),
            1 => (group, consumer).prop_map(|(group, consumer)| DeleteConsumer(group, consumer)),
        ]
    }

    fn apply(
        tx: &mut dyn WriteTransaction,
        database: DatabaseId,
        key: &[u8],
        model: &mut Model,
        operation: &Operation,
    ) {
        let stream = Stream::new(database, key);
        match operation {
            Operation::Append(places, fields) => append(tx, stream, model, *places, fields),
            Operation::AppendMany(count) => {
                (0..*count).for_each(|_| append(tx, stream, model, 1, &[vec![], vec![1]]));
            }
            Operation::CreateGroup(group, last_id) => {
                let mut state = stream.open(tx).unwrap();
                let model = model.get_or_insert_default();
                let name = name(*group);
                let last_id = id(*last_id);
                let is_new = stream.create_group(tx, &mut state, &name, last_id, None).unwrap();
                assert_eq!(is_new, !model.groups.contains_key(&name));
                let made = GroupModel { last_id, ..GroupModel::default() };
                model.groups.entry(name).or_insert(made);
            }
            operation => {
                let (Some(mut state), Some(model)) = (stream.state(tx).unwrap(), model) else {
                    return;
                };
                change(tx, stream, &mut state, model, operation);
            }
        }
    }

    fn check(tx: &mut dyn ReadTransaction, database: DatabaseId, key: &[u8], model: &Model) {
        let stream = Stream::new(database, key);
        let state = stream.state(tx).unwrap();
        assert_eq!(state.is_some(), model.is_some());
        let (Some(state), Some(model)) = (state, model) else { return };
        assert_eq!((state.len, state.added), (model.entries.len() as u64, model.added));
        assert_eq!((state.last_id, state.max_deleted_id), (model.last_id, model.max_deleted_id));
        let first = model.entries.keys().next().copied().unwrap_or_default();
        assert_eq!((state.first_id, state.groups), (first, model.groups.len() as u64));
        check_entries(tx, stream, &state, model);
        let mut names = Vec::new();
        stream
            .visit_groups(tx, &state, &mut |name, group| {
                names.push((name.to_vec(), group.last_id));
                ControlFlow::Continue(())
            })
            .unwrap();
        assert!(names.iter().eq(
            model.groups.iter().map(|(n, g)| (n.clone(), g.last_id)).collect::<Vec<_>>().iter()
        ));
        for (name, group) in &model.groups {
            let open = stream.group(tx, &state, name).unwrap().unwrap();
            check_group(tx, open, group);
        }
    }

    fn is_empty(model: &Model) -> bool {
        model.is_none()
    }
}

fn append(
    tx: &mut dyn WriteTransaction,
    stream: Stream<'_>,
    model: &mut Model,
    places: u64,
    fields: &[Vec<u8>],
) {
    let mut state = stream.open(tx).unwrap();
    let id = later(state.last_id, places);
    stream.append(tx, &mut state, id, fields.iter().map(Vec::as_slice)).unwrap();
    let model = model.get_or_insert_default();
    model.entries.insert(id, fields.to_vec());
    (model.added, model.last_id) = (model.added + 1, id);
}

fn change(
    tx: &mut dyn WriteTransaction,
    stream: Stream<'_>,
    state: &mut State,
    model: &mut StreamModel,
    operation: &Operation,
) {
    match operation {
        Operation::Delete(ids) => {
            let ids = chosen(ids, model.entries.keys());
            let before = model.entries.len();
            let deleted = stream.delete(tx, state, ids.iter().copied()).unwrap();
            for id in ids.iter().filter(|id| model.entries.remove(id).is_some()) {
                model.max_deleted_id = model.max_deleted_id.max(*id);
            }
            assert_eq!(deleted as usize, before - model.entries.len());
        }
        Operation::TrimToLen(len, count) => {
            let trimmed = stream.trim(tx, state, Trim::ToLen(*len), *count).unwrap();
            let expected = (model.entries.len() as u64).saturating_sub(*len).min(*count);
            (0..expected).for_each(|_| drop(model.entries.pop_first()));
            assert_eq!(trimmed, expected);
        }
        Operation::TrimUpTo(last) => {
            let trimmed = stream.trim(tx, state, Trim::UpTo(id(*last)), u64::MAX).unwrap();
            let before = model.entries.len();
            model.entries.retain(|other, _| *other > id(*last));
            assert_eq!(trimmed as usize, before - model.entries.len());
        }
        Operation::DestroyGroup(group) => {
            let was_there = stream.destroy_group(tx, state, &name(*group)).unwrap();
            assert_eq!(was_there, model.groups.remove(&name(*group)).is_some());
        }
        operation => change_group(tx, stream, state, model, operation),
    }
}

fn change_group(
    tx: &mut dyn WriteTransaction,
    stream: Stream<'_>,
    state: &State,
    model: &mut StreamModel,
    operation: &Operation,
) {
    let (Operation::SetId(group, _)
    | Operation::Deliver(group, ..)
    | Operation::Acknowledge(group, _)
    | Operation::Claim(group, ..)
    | Operation::DeleteConsumer(group, _)) = operation
    else {
        unreachable!("all others are done elsewhere")
    };
    let open = stream.group(tx, state, &name(*group)).unwrap();
    let found = model.groups.get_mut(&name(*group));
    assert_eq!(open.is_some(), found.is_some());
    let (Some(mut open), Some(group)) = (open, found) else { return };
    match operation {
        Operation::SetId(_, last_id) => {
            group.last_id = id(*last_id);
            open.set_last_id(tx, id(*last_id), None).unwrap();
        }
        Operation::Deliver(_, consumer, count, acknowledged) => {
            let consumer = group.consumer(&mut open, tx, *consumer);
            let after = group.last_id;
            let ids: Vec<_> =
                model.entries.keys().filter(|id| **id > after).take(*count).copied().collect();
            open.deliver(tx, consumer.0, &ids, *acknowledged).unwrap();
            group.last_id = ids.last().copied().unwrap_or(after);
            if !acknowledged {
                group.pending.extend(ids.iter().map(|id| (*id, (consumer.1.clone(), 1))));
            }
        }
        Operation::Acknowledge(_, ids) => {
            for id in chosen(ids, group.pending.keys()) {
                let was_pending = open.acknowledge(tx, id).unwrap();
                assert_eq!(was_pending, group.pending.remove(&id).is_some());
            }
        }
        Operation::Claim(_, consumer, n) => {
            let (number, name) = group.consumer(&mut open, tx, *consumer);
            let pending = Pending { consumer: number, delivered_at_ms: 5, deliveries: *n };
            let id = chosen(&[*n], group.pending.keys())[0];
            open.set_pending(tx, id, pending).unwrap();
            group.pending.insert(id, (name, *n));
        }
        Operation::DeleteConsumer(_, consumer) => {
            let name = name(*consumer);
            let removed = open.delete_consumer(tx, &name).unwrap();
            let before = group.pending.len();
            group.pending.retain(|_, (owner, _)| *owner != name);
            let expected = group.consumers.contains(&name).then(|| before - group.pending.len());
            assert_eq!(removed.map(|removed| removed as usize), expected);
            group.consumers.retain(|other| *other != name);
        }
        _ => unreachable!("all others are done elsewhere"),
    }
    open.save(tx).unwrap();
}

impl GroupModel {
    /// The consumer in both, created if there is none.
    fn consumer(
        &mut self,
        open: &mut OpenGroup<'_>,
        tx: &mut dyn WriteTransaction,
        consumer: u8,
    ) -> (u64, Vec<u8>) {
        let name = name(consumer);
        let (number, is_new) = open.open_consumer(tx, &name).unwrap();
        assert_eq!(is_new, !self.consumers.contains(&name));
        if is_new {
            self.consumers.push(name.clone());
            self.consumers.sort();
        }
        (number, name)
    }
}

fn check_entries(
    tx: &mut dyn ReadTransaction,
    stream: Stream<'_>,
    state: &State,
    model: &StreamModel,
) {
    for (low, high) in [(0, u64::MAX), (5, 20), (20, 5), (model.last_id.ms * 3, u64::MAX)] {
        let ids = id(low)..=if high == u64::MAX { StreamId::MAX } else { id(high) };
        for direction in [Direction::Forward, Direction::Backward] {
            let mut seen = Vec::new();
            stream
                .visit(tx, state, ids.clone(), direction, &mut |id, fields| {
                    assert_eq!(fields.len(), fields.clone().count());
                    seen.push((id, fields.map(<[u8]>::to_vec).collect::<Vec<_>>()));
                    ControlFlow::Continue(())
                })
                .unwrap();
            if direction == Direction::Backward {
                seen.reverse();
            }
            let expected = model.entries.iter().filter(|(id, _)| ids.contains(id));
            assert!(seen.iter().map(|(id, fields)| (id, fields)).eq(expected));
        }
    }
    for n in (0..40).step_by(3) {
        let expected = model.entries.range(id(n)..).find(|(other, _)| **other > id(n));
        let found = stream.find_after(tx, state, id(n)).unwrap();
        assert_eq!(found, expected.map(|(id, _)| *id));
        let is_there = stream.visit_one(tx, state, id(n), |_| {}).unwrap();
        assert_eq!(is_there, model.entries.contains_key(&id(n)));
    }
}

fn check_group(tx: &mut dyn ReadTransaction, mut open: OpenGroup<'_>, model: &GroupModel) {
    assert_eq!(open.group.pending, model.pending.len() as u64);
    assert_eq!(open.group.consumers, model.consumers.len() as u64);
    let mut consumers: Vec<(u64, Consumer)> = Vec::new();
    open.visit_consumers(tx, &mut |number, consumer| {
        consumers.push((number, consumer));
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!(consumers.iter().map(|(_, consumer)| &consumer.name).eq(&model.consumers));
    for (number, consumer) in &consumers {
        let mut owned = Vec::new();
        open.visit_owned(tx, *number, StreamId::MIN..=StreamId::MAX, &mut |id| {
            owned.push(id);
            ControlFlow::Continue(())
        })
        .unwrap();
        let expected = model.pending.iter().filter(|(_, (owner, _))| *owner == consumer.name);
        assert!(owned.iter().eq(expected.map(|(id, _)| id)));
        assert_eq!(consumer.pending as usize, owned.len());
    }
    for (direction, ids) in [
        (Direction::Forward, StreamId::MIN..=StreamId::MAX),
        (Direction::Backward, StreamId::MIN..=StreamId::MAX),
        (Direction::Forward, id(7)..=id(30)),
    ] {
        let mut seen = Vec::new();
        open.visit_pending(tx, ids.clone(), direction, &mut |id, pending| {
            seen.push((id, pending));
            ControlFlow::Continue(())
        })
        .unwrap();
        if direction == Direction::Backward {
            seen.reverse();
        }
        let mut expected = model.pending.iter().filter(|(id, _)| ids.contains(id));
        for (id, pending) in seen {
            let (other, (owner, deliveries)) = expected.next().unwrap();
            let consumer = &open.consumer(tx, pending.consumer).unwrap().name;
            assert_eq!((id, consumer, pending.deliveries), (*other, owner, *deliveries));
        }
        assert!(expected.next().is_none());
    }
}

super::model_tests!(Streams);
