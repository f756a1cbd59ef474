//! The results of a load, for people and programs.

use std::fmt;

use serde_json::{Value, json};

use super::{
    ceiling::Ceiling,
    command::Command,
    histogram::{Latency, Tally},
    operation::Kind,
    process::Usage,
    run::{Interval, Load, Outcome, Pace},
    verdict::Verdict,
};
use crate::{machine::Machine, units};

/// The quantiles that are printed, with their names.
const QUANTILES: [(f64, &str, &str); 5] = [
    (0.5, "50 %", "p50_ns"),
    (0.9, "90 %", "p90_ns"),
    (0.99, "99 %", "p99_ns"),
    (0.999, "99.9 %", "p999_ns"),
    (0.9999, "99.99 %", "p9999_ns"),
];

/// How late the generator must be for it to be reported, as a fraction of the time that requests took.
const LATE_PART_MIN: f64 = 0.1;

/// The maximum fraction of the time for which others may have had the processor when the generator wanted it.
const WAITED_MAX: f64 = 0.05;

/// The names of the columns of [`interval_csv`].
pub const CSV_HEAD: &str = "second,counts,requests,misses,refused,response_p50_us,response_p99_us,response_max_us,\
                            service_p50_us,service_p99_us,service_max_us";

/// The results of a load, with their circumstances. It displays as a table.
#[derive(Debug)]
pub struct Report {
    /// What was sent.
    pub load: Load,
    /// The results.
    pub outcome: Outcome,
    /// The generator's maximum, if it was measured.
    pub ceiling: Option<Ceiling>,
    /// What it was measured on.
    pub machine: Machine,
}

impl Report {
    /// What limited the rate.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        Verdict::of(&self.load, &self.outcome)
    }

    /// The generator's share of the processor time that it and the server used; `None` if the server's is unknown.
    #[must_use]
    pub fn client_share(&self) -> Option<f64> {
        let client = self.outcome.client.processor().as_secs_f64();
        let both = client + self.outcome.server?.processor().as_secs_f64();
        (both > 0.0).then_some(client / both)
    }

    /// The report as one JSON object.
    #[must_use]
    pub fn json(&self) -> Value {
        let Self { load, outcome, ceiling, machine } = self;
        let (closed, rate) = match load.pace {
            Pace::Closed => (true, None),
            Pace::Rate(rate) => (false, Some(rate)),
        };
        let verdict = self.verdict();
        json!({
            "type": "summary",
            "address": load.address.to_string(),
            "protocol": load.protocol.name(),
            "mix": load.command.is_none().then(|| load.mix.to_string()),
            "command": load.command.as_ref().map(Command::to_string),
            "connections": load.connections,
            "pipeline": load.pipeline,
            "threads": load.threads,
            "closed_loop": closed,
            "rate_wanted": rate,
            "seconds": outcome.time.as_secs_f64(),
            "requests": outcome.tally.requests(),
            "rate": outcome.rate,
            "rate_is_lower_bound": verdict == Verdict::Generator,
            "limit": verdict.name(),
            "answered": load.command.is_none().then(|| Value::Object(Kind::ALL.iter().zip(outcome.tally.answered)
                .map(|(kind, count)| (kind.name().to_owned(), count.into())).collect())),
            "misses": outcome.tally.misses,
            "refused": outcome.tally.refused,
            "refusal": outcome.tally.refusal,
            "unsent": outcome.unsent,
            "unanswered": outcome.unanswered,
            "bytes_out": outcome.tally.bytes_out,
            "bytes_in": outcome.tally.bytes_in,
            "response": latency_json(&outcome.tally.response),
            "service": latency_json(&outcome.tally.service),
            "lateness": latency_json(&outcome.lateness),
            "client": usage_json(&outcome.client),
            "server": outcome.server.as_ref().map(usage_json),
            "client_share": self.client_share(),
            "client_ran": outcome.ran,
            "client_waited": outcome.waited,
            "ceiling": ceiling.map(|ceiling| ceiling.rate),
            "machine": {
                "processor": machine.processor,
                "cores": machine.cores,
                "governor": machine.governor,
                "kernel": machine.kernel,
            },
        })
    }
}

fn latency_json(latency: &Latency) -> Value {
    let mut object = serde_json::Map::new();
    for (quantile, _, name) in QUANTILES {
        object.insert(name.to_owned(), latency.quantile(quantile).into());
    }
    object.insert("max_ns".to_owned(), latency.max().into());
    object.insert("mean_ns".to_owned(), json!(latency.mean()));
    object.insert("count".to_owned(), latency.count().into());
    Value::Object(object)
}

fn usage_json(usage: &Usage) -> Value {
    json!({
        "user_s": usage.user.as_secs_f64(),
        "system_s": usage.system.as_secs_f64(),
        "switches_voluntary": usage.switches_voluntary,
        "switches_involuntary": usage.switches_involuntary,
        "written_bytes": usage.written,
    })
}

/// A second as one JSON object.
#[must_use]
pub fn interval_json(interval: &Interval) -> Value {
    let tally = &interval.tally;
    json!({
        "type": "interval",
        "second": interval.second,
        "counts": interval.counts,
        "requests": tally.requests(),
        "misses": tally.misses,
        "refused": tally.refused,
        "response": latency_json(&tally.response),
        "service": latency_json(&tally.service),
    })
}

/// A second as a line of CSV, with the columns of [`CSV_HEAD`].
#[must_use]
pub fn interval_csv(interval: &Interval) -> String {
    let Tally { response, service, misses, refused, .. } = &interval.tally;
    let us = |ns: u64| format!("{:.1}", ns as f64 / 1e3);
    let times = [response, service].map(|latency| {
        format!(
            "{},{},{}",
            us(latency.quantile(0.5)),
            us(latency.quantile(0.99)),
            us(latency.max())
        )
    });
    let (second, counts, requests) = (interval.second, interval.counts, interval.tally.requests());
    format!("{second},{counts},{requests},{misses},{refused},{}", times.join(","))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (load, outcome) = (&self.load, &self.outcome);
        let pace = match load.pace {
            Pace::Closed => "closed loop".to_owned(),
            Pace::Rate(rate) => format!("{}/s", units::thousands(rate as u64)),
        };
        let Load { address, protocol, connections, pipeline, threads, .. } = load;
        let what = load.command.as_ref().map_or_else(|| load.mix.to_string(), Command::to_string);
        let seconds = outcome.time.as_secs_f64();
        let threads = match threads {
            1 => "1 thread".to_owned(),
            threads => format!("{threads} threads"),
        };
        writeln!(
            f,
            "{address}, {protocol}, {what}; {connections} connections, pipeline of {pipeline}, {threads}, {pace}, {seconds:.1} s"
        )?;
        writeln!(f, "{}\n", self.machine)?;
        self.rate(f)?;
        self.latencies(f)?;
        self.usages(f)?;
        self.complaints(f)
    }
}

impl Report {
    fn rate(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (outcome, verdict) = (&self.outcome, self.verdict());
        let at_least = if verdict == Verdict::Generator { "at least " } else { "" };
        let rate = units::thousands(outcome.rate as u64);
        writeln!(f, "{:<11}{at_least}{rate}/s: {verdict}", "requests")?;
        let requests = units::thousands(outcome.tally.requests());
        let [misses, refused] = [outcome.tally.misses, outcome.tally.refused].map(units::thousands);
        writeln!(f, "{:<11}{requests} answered, {misses} found no record, {refused} refused", "")?;
        if outcome.unsent + outcome.unanswered > 0 {
            let [unsent, unanswered] = [outcome.unsent, outcome.unanswered].map(units::thousands);
            writeln!(
                f,
                "{:<11}{unsent} were due and could not be sent, {unanswered} were not answered; their waiting counts below",
                ""
            )?;
        }
        Ok(())
    }

    fn latencies(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{:<11}", "time")?;
        for (_, name, _) in QUANTILES {
            write!(f, "{name:>10}")?;
        }
        writeln!(f, "{:>10}", "longest")?;
        let tally = &self.outcome.tally;
        match self.load.pace {
            Pace::Closed => latency_row(
                f,
                "service",
                &tally.service,
                "from its sending to its answer; what a stall kept from being sent is not seen",
            ),
            Pace::Rate(_) => {
                latency_row(f, "response", &tally.response, "from when it was due to its answer")?;
                latency_row(
                    f,
                    "service",
                    &tally.service,
                    "from its sending to its answer: what a closed loop would have said",
                )
            }
        }
    }

    fn usages(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n{:<11}{:>10}{:>10}{:>10}{:>12}{:>12}{:>12}{:>12}",
            "processor",
            "user",
            "system",
            "of a core",
            "a request",
            "waits",
            "preempted",
            "written"
        )?;
        self.usage_row(f, "generator", Some(&self.outcome.client))?;
        self.usage_row(f, "server", self.outcome.server.as_ref())?;
        if let Some(share) = self.client_share() {
            writeln!(
                f,
                "{:<11}{:.0} % of the time of both was the generator's",
                "share",
                share * 100.0
            )?;
        }
        if let Some(ceiling) = self.ceiling {
            let [rate, per_thread] =
                [ceiling.rate, ceiling.per_thread].map(|rate| units::thousands(rate as u64));
            writeln!(
                f,
                "{:<11}the generator itself can do {rate}/s here, {per_thread}/s by a thread",
                "ceiling"
            )?;
        }
        Ok(())
    }

    fn usage_row(
        &self,
        f: &mut fmt::Formatter<'_>,
        name: &str,
        usage: Option<&Usage>,
    ) -> fmt::Result {
        let Some(usage) = usage else {
            return writeln!(f, "{name:<11}is not a process of this machine that we may look at");
        };
        let time = |time: std::time::Duration| units::time(time.as_nanos() as f64);
        let seconds = self.outcome.time.as_secs_f64().max(f64::MIN_POSITIVE);
        let core = usage.processor().as_secs_f64() / seconds * 100.0;
        let requests = self.outcome.tally.requests().max(1) as f64;
        let each = units::time(usage.processor().as_nanos() as f64 / requests);
        let [waits, preempted] =
            [usage.switches_voluntary, usage.switches_involuntary].map(units::thousands);
        let written = usage.written.map_or_else(|| "?".to_owned(), units::bytes);
        writeln!(
            f,
            "{name:<11}{:>10}{:>10}{core:>8.0} %{each:>12}{waits:>12}{preempted:>12}{written:>12}",
            time(usage.user),
            time(usage.system)
        )
    }

    fn complaints(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = &self.outcome;
        if let Some(refusal) = &outcome.tally.refusal {
            writeln!(f, "\nwarning: the server refused requests, the first of them so: {refusal}")?;
        }
        let late = outcome.lateness.quantile(0.99);
        if late as f64 > outcome.tally.response.quantile(0.99) as f64 * LATE_PART_MIN {
            writeln!(
                f,
                "\nwarning: the generator was late itself, by {} for 1 % of the requests; so much of their time is not the server's",
                units::time(late as f64)
            )?;
        }
        if outcome.waited > WAITED_MAX {
            writeln!(
                f,
                "\nwarning: others had the processor for {:.0} % of the time when the generator wanted it; measure again when the \
                 machine is at rest",
                outcome.waited * 100.0
            )?;
        }
        if let Some(governor) = self.machine.unsteady_governor() {
            writeln!(
                f,
                "\nwarning: the clock of the cores is governed by {governor:?} and may change meanwhile"
            )?;
        }
        Ok(())
    }
}

fn latency_row(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    latency: &Latency,
    what: &str,
) -> fmt::Result {
    write!(f, "{name:<11}")?;
    for (quantile, _, _) in QUANTILES {
        write!(f, "{:>10}", units::time(latency.quantile(quantile) as f64))?;
    }
    writeln!(f, "{:>10}  {what}", units::time(latency.max() as f64))
}
