//! `report` and `status`: figures of the server and of its databases.

use tokaido_store::{DatabaseId, ReadTransaction};
use tokaido_wire::kyoto::Pairs;

use super::{inputs::Inputs, refusal::Refusal};
use crate::{
    Shared,
    metrics::Metrics,
    shared::{TOKAIDO_VERSION, wall_clock_us},
};

/// The version of Kyoto Tycoon whose procedures are supported.
const KYOTO_TYCOON_VERSION: &str = "0.9.56";

fn put(outputs: &mut Pairs, name: &str, value: impl std::fmt::Display) {
    outputs.insert(name.as_bytes().to_vec(), value.to_string().into());
}

/// Reports on the server.
pub(crate) fn report(
    shared: &Shared,
    metrics: &Metrics,
    tx: &mut dyn ReadTransaction,
) -> Result<Pairs, Refusal> {
    let mut outputs = Pairs::new();
    let (mut records, mut bytes) = (0, 0);
    for (number, name) in shared.kyoto.databases().iter().enumerate() {
        let found = shared.store().find_database(name).unwrap_or(DatabaseId::NOWHERE);
        let statistics = tx.statistics(found)?;
        let size = statistics.key_bytes + statistics.value_bytes;
        records += statistics.records;
        bytes += size;
        let text = format!("count={} size={size} path={name}", statistics.records);
        put(&mut outputs, &format!("db_{number}"), text);
    }
    put(&mut outputs, "db_total_count", records);
    put(&mut outputs, "db_total_size", bytes);
    put(&mut outputs, "serv_conn_count", metrics.sum(|worker| &worker.connections_open));
    put(&mut outputs, "serv_thread_count", shared.worker_count());
    #[allow(clippy::cast_precision_loss, reason = "a time of the day, to the microsecond")]
    let now_s = wall_clock_us() as f64 / 1e6;
    put(&mut outputs, "serv_current_time", format_args!("{now_s:.6}"));
    put(&mut outputs, "serv_running_term", format_args!("{}.000000", shared.uptime_s()));
    put(&mut outputs, "serv_proc_id", std::process::id());
    for (name, count) in shared.kyoto.figures.each() {
        put(&mut outputs, name, count);
    }
    put(
        &mut outputs,
        "conf_kt_version",
        format_args!("{KYOTO_TYCOON_VERSION} (Tokaido {TOKAIDO_VERSION})"),
    );
    put(&mut outputs, "conf_os_name", std::env::consts::OS);
    Ok(outputs)
}

/// Reports on a database.
pub(crate) fn status(
    _: &Inputs,
    tx: &mut dyn ReadTransaction,
    database: DatabaseId,
) -> Result<Pairs, Refusal> {
    let statistics = tx.statistics(database)?;
    let mut outputs = Pairs::new();
    put(&mut outputs, "count", statistics.records);
    put(&mut outputs, "size", statistics.key_bytes + statistics.value_bytes);
    Ok(outputs)
}
