//! What the server counts, and its form for Prometheus.
//!
//! Workers count into numbers of their own, which are added up on request: one shared counter
//! would travel between the cores with every request.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, text::encode},
    metrics::{
        MetricType,
        counter::ConstCounter,
        gauge::ConstGauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};
use tokaido_store::{
    DatabaseStatistics, ReadError, ReadTransaction, Store, Usage, cache, composite,
};

use crate::{call_statistics::CallStatistics, log, program::Program, watch::Activity};

/// Where requests ended up. Each worker has its own cache line.
#[derive(Default)]
#[repr(align(64))]
pub(crate) struct WorkerCounters {
    pub(crate) connections_total: AtomicU64,
    pub(crate) connections_open: AtomicU64,
    /// Connections closed because their clients did not take what was pushed to them.
    pub(crate) connections_overrun: AtomicU64,
    pub(crate) resp: RequestCounters,
    pub(crate) http: RequestCounters,
    pub(crate) memcached: RequestCounters,
    pub(crate) kyoto: RequestCounters,
    pub(crate) tyrant: RequestCounters,
}

/// Requests of one protocol.
#[derive(Default)]
pub(crate) struct RequestCounters {
    /// Answered by the worker itself.
    pub(crate) local: AtomicU64,
    /// Answered by the writer.
    pub(crate) writer: AtomicU64,
    /// Answered by the pool.
    pub(crate) pool: AtomicU64,
    /// Not understood, over a limit, or refused.
    pub(crate) errors: AtomicU64,
}

/// Adds to a counter that only this thread writes to.
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed);
}

/// All counters of a server.
pub(crate) struct Metrics {
    started: Instant,
    pub(crate) workers: Vec<Arc<WorkerCounters>>,
    /// Connections that were over the limit.
    pub(crate) connections_refused: AtomicU64,
    /// Whether a sync failed or the writer died, so that the store takes no more writes.
    pub(crate) store_refuses_writes: AtomicBool,
    group_seconds: Histogram,
    group_jobs: Histogram,
    groups_failed: AtomicU64,
}

impl Metrics {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            started: Instant::now(),
            workers: (0..workers).map(|_| Arc::default()).collect(),
            connections_refused: AtomicU64::new(0),
            store_refuses_writes: AtomicBool::new(false),
            // 50 µs to 0.8 s, and 1 to 512 jobs.
            group_seconds: Histogram::new(exponential_buckets(0.000_05, 2.0, 15)),
            group_jobs: Histogram::new(exponential_buckets(1.0, 2.0, 10)),
            groups_failed: AtomicU64::new(0),
        }
    }

    /// Notes a group of writes.
    pub(crate) fn group_done(&self, jobs: usize, took: Duration, succeeded: bool) {
        self.group_seconds.observe(took.as_secs_f64());
        self.group_jobs.observe(jobs as f64);
        if !succeeded {
            self.groups_failed.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn sum(&self, counter: impl Fn(&WorkerCounters) -> &AtomicU64) -> u64 {
        self.workers.iter().map(|w| counter(w).load(Relaxed)).sum()
    }

    /// The number of requests that were answered, over all protocols.
    pub(crate) fn requests(&self) -> u64 {
        let of_protocol = |counters: &RequestCounters| {
            let RequestCounters { local, writer, pool, errors: _ } = counters;
            [local, writer, pool].iter().map(|counter| counter.load(Relaxed)).sum::<u64>()
        };
        let of_worker = |worker: &WorkerCounters| {
            let WorkerCounters { resp, http, memcached, kyoto, tyrant, .. } = worker;
            [resp, http, memcached, kyoto, tyrant].into_iter().map(of_protocol).sum::<u64>()
        };
        self.workers.iter().map(|worker| of_worker(worker)).sum()
    }

    /// All metrics in Prometheus' format.
    pub(crate) fn encode(
        self: &Arc<Self>,
        program: Arc<Program>,
        databases: &[Holdings],
        usage: Usage,
        threads: Vec<Activity>,
    ) -> Result<String, fmt::Error> {
        let caches = databases.iter().filter_map(|d| Some((d.name.clone(), d.cache?)));
        let databases = databases.iter().map(|d| (d.name.clone(), d.statistics));
        let mut registry = Registry::with_prefix("tokaido");
        registry.register(
            "write_group_seconds",
            "Time from the first job of a group of writes until the group was durable",
            self.group_seconds.clone(),
        );
        registry.register("write_group_jobs", "Jobs in a group of writes", self.group_jobs.clone());
        registry.register_collector(Box::new(Numbers {
            metrics: self.clone(),
            program,
            caches: caches.collect(),
            databases: databases.collect(),
            usage,
            threads,
        }));
        let mut text = String::new();
        encode(&mut text, &registry)?;
        Ok(text)
    }
}

/// What one database holds.
pub(crate) struct Holdings {
    pub(crate) name: String,
    /// The name of the engine behind it.
    pub(crate) engine: &'static str,
    pub(crate) statistics: DatabaseStatistics,
    /// For a cache, what it has done as well.
    cache: Option<cache::Statistics>,
}

/// What each database holds, ordered by name.
pub(crate) fn holdings(
    store: &dyn Store,
    transaction: &mut dyn ReadTransaction,
) -> Result<Vec<Holdings>, ReadError> {
    let mut databases = store.databases();
    databases.sort_by(|a, b| a.1.cmp(&b.1));
    let held = |(id, name)| {
        Ok(Holdings {
            name,
            engine: store.capabilities(id).name,
            statistics: transaction.statistics(id)?,
            cache: composite::cache(store, id).map(|cache| cache.statistics()),
        })
    };
    databases.into_iter().map(held).collect()
}

/// Selects a part of a whole.
type Part<W, P> = fn(&W) -> &P;

/// The numbers at one moment.
struct Numbers {
    metrics: Arc<Metrics>,
    program: Arc<Program>,
    databases: Vec<(String, DatabaseStatistics)>,
    usage: Usage,
    caches: Vec<(String, cache::Statistics)>,
    threads: Vec<Activity>,
}

impl fmt::Debug for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Numbers")
    }
}

impl Collector for Numbers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let out = &mut encoder;
        let metrics = &self.metrics;
        gauge(out, "uptime_seconds", "Uptime of the server", metrics.started.elapsed().as_secs())?;
        let open =
            metrics.workers.iter().enumerate().map(|(index, worker)| {
                ([("worker", index)], worker.connections_open.load(Relaxed))
            });
        gauges(out, "connections_open", "Open connections of each worker", open)?;
        let total = metrics.sum(|w| &w.connections_total);
        counter(out, "connections", "Connections accepted", total)?;
        let refused = metrics.connections_refused.load(Relaxed);
        counter(out, "connections_refused", "Connections refused because of the limit", refused)?;
        let overrun = metrics.sum(|w| &w.connections_overrun);
        let help = "Connections closed because their clients did not read their pushed messages";
        counter(out, "connections_overrun", help, overrun)?;
        self.encode_requests(out)?;
        let failed = metrics.groups_failed.load(Relaxed);
        counter(out, "write_groups_failed", "Groups of writes that failed", failed)?;
        let help = "Lines of the log that could not be written";
        counter(out, "log_lines_dropped", help, log::lines_dropped())?;
        self.encode_threads(out)?;
        self.encode_procedures(out)?;
        self.encode_usage(out)?;
        self.encode_databases(out)?;
        self.encode_caches(out)
    }
}

impl Numbers {
    fn encode_requests(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let protocols: [(&str, Part<WorkerCounters, RequestCounters>); 5] = [
            ("resp", |w| &w.resp),
            ("http", |w| &w.http),
            ("memcached", |w| &w.memcached),
            ("kyoto", |w| &w.kyoto),
            ("tyrant", |w| &w.tyrant),
        ];
        let places: [(&str, Part<RequestCounters, AtomicU64>); 3] =
            [("worker", |r| &r.local), ("writer", |r| &r.writer), ("pool", |r| &r.pool)];
        let requests = protocols.iter().flat_map(|&(protocol, of)| {
            places.iter().map(move |&(place, at)| {
                let labels = [("protocol", protocol), ("place", place)];
                (labels, self.metrics.sum(move |w| at(of(w))))
            })
        });
        counters(
            out,
            "requests",
            "Requests by protocol and by the kind of thread that ran them",
            requests,
        )?;
        let errors = protocols.iter().map(|&(protocol, of)| {
            ([("protocol", protocol)], self.metrics.sum(move |w| &of(w).errors))
        });
        counters(out, "request_errors", "Requests refused by the protocol layer", errors)
    }

    fn encode_threads(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let each = |read: fn(&Activity) -> u64| {
            self.threads.iter().map(move |a| ([("thread", a.thread.as_str())], read(a)))
        };
        let busy = "Time that each thread has spent on its current request or procedure";
        gauges(out, "thread_busy_ms", busy, each(|a| a.time.as_millis() as u64))?;
        let stalled = "Whether each thread has stalled on its current request or procedure";
        gauges(out, "thread_stalled", stalled, each(|a| u64::from(a.has_stalled)))
    }

    fn encode_procedures(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let each = |read: fn(&CallStatistics) -> &AtomicU64| {
            self.program.statistics().map(move |(procedure, statistics)| {
                ([("procedure", procedure.name.as_str())], read(statistics).load(Relaxed))
            })
        };
        counters(out, "procedure_calls", "Calls of each procedure", each(|s| &s.calls))?;
        let refusals = "Calls that each procedure refused";
        counters(out, "procedure_refusals", refusals, each(|s| &s.refusals))?;
        counters(out, "procedure_errors", "Failed calls of each procedure", each(|s| &s.errors))?;
        counters(out, "procedure_time_ns", "Time spent in each procedure", each(|s| &s.time_ns))
    }

    fn encode_usage(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let Usage { memtable_bytes, held_bytes, log_bytes, base_bytes, runs_bytes } = self.usage;
        let since = "Memory used by the writes since the last checkpoint";
        gauge(out, "memtable_bytes", since, memtable_bytes)?;
        let held = "Memory used by older memtables that long reads still see";
        gauge(out, "memtable_held_bytes", held, held_bytes)?;
        gauge(out, "log_bytes", "Size of the log files", log_bytes)?;
        gauge(out, "base_bytes", "Size of the base file", base_bytes)?;
        gauge(out, "runs_bytes", "Size of the run files, not yet merged into the base", runs_bytes)
    }

    fn encode_databases(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let each = |read: fn(&DatabaseStatistics) -> u64| {
            self.databases.iter().map(move |(name, d)| ([("database", name.as_str())], read(d)))
        };
        let mut family = |name, help, read| gauges(out, name, help, each(read));
        family("database_records", "Number of records", |d| d.records)?;
        family("database_key_bytes", "Total size of all keys", |d| d.key_bytes)?;
        family("database_value_bytes", "Total size of all values", |d| d.value_bytes)
    }

    fn encode_caches(&self, out: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let each = |read: fn(&cache::Statistics) -> u64| {
            self.caches.iter().map(move |(name, c)| ([("database", name.as_str())], read(c)))
        };
        counters(out, "cache_hits", "Reads that found a record", each(|c| c.hits))?;
        counters(out, "cache_misses", "Reads that found none", each(|c| c.misses))?;
        counters(out, "cache_evicted", "Records evicted to make room", each(|c| c.evicted))?;
        counters(out, "cache_expired", "Records removed as expired", each(|c| c.expired))?;
        gauges(out, "cache_bytes", "Bytes allocated by each cache", each(|c| c.bytes_used))?;
        gauges(out, "cache_bytes_max", "Maximum size of each cache", each(|c| c.bytes_max))
    }
}

fn gauge(out: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    let value = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
    value.encode(out.encode_descriptor(name, help, None, MetricType::Gauge)?)
}

fn counter(out: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    let metric = out.encode_descriptor(name, help, None, MetricType::Counter)?;
    ConstCounter::new(value).encode(metric)
}

fn gauges(
    out: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl IntoIterator<Item = (impl EncodeLabelSet, u64)>,
) -> fmt::Result {
    let mut family = out.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, value) in values {
        let value = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
        value.encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

fn counters(
    out: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl IntoIterator<Item = (impl EncodeLabelSet, u64)>,
) -> fmt::Result {
    let mut family = out.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (labels, value) in values {
        ConstCounter::new(value).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}
