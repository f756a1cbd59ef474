//! Loads: each puts a server to work once and gives one sample.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, TcpStream},
    time::{Duration, Instant},
};

use crate::{
    failure::{Failure, Outcome},
    process::Command,
};

/// Longest to wait for one answer of a server.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);

/// What came of one load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    /// In the unit of the scenario.
    pub(super) figure: f64,
    /// What the server did in all.
    pub(super) operations: f64,
    /// How much of one core the load took, 1 being all of it, if it was this program that made it.
    pub(super) client_busy: Option<f64>,
}

impl Sample {
    /// Of a load that another program made, or that was next to nothing.
    fn of(figure: f64, operations: f64) -> Self {
        Self { figure, operations, client_busy: None }
    }
}

/// Runs `redis-benchmark` with so many requests and gives requests per second.
pub(super) fn redis_benchmark(port: u16, requests: u32, arguments: &str) -> Outcome<Sample> {
    let (port, count) = (port.to_string(), requests.to_string());
    let arguments =
        ["-p", &port, "-n", &count, "--csv"].into_iter().chain(arguments.split_whitespace());
    let output = Command::new("redis-benchmark", arguments).output()?;
    requests_per_second_of_csv(&output)
        .map(|rate| Sample::of(rate, f64::from(requests)))
        .ok_or_else(|| Failure::new(format!("redis-benchmark gave no figure: {output}")))
}

/// How long requests took, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tail {
    /// 99.9 % of them at most.
    pub(super) nearly_all_ms: f64,
    pub(super) worst_ms: f64,
}

/// Runs `redis-benchmark` with so many requests and gives how long they took at most.
pub(super) fn redis_tail(port: u16, requests: u32, arguments: &str) -> Outcome<Tail> {
    let (port, count) = (port.to_string(), requests.to_string());
    let arguments = ["-p", &port, "-n", &count].into_iter().chain(arguments.split_whitespace());
    let output = Command::new("redis-benchmark", arguments).output()?;
    tail_of_percentiles(&output)
        .ok_or_else(|| Failure::new(format!("redis-benchmark gave no percentiles: {output}")))
}

/// Runs `wrk` and gives requests per second; an answer that is not a success fails it. Of the
/// arguments, those behind `--` are its script's.
pub(super) fn wrk(port: u16, path: &str, arguments: &[&str]) -> Outcome<Sample> {
    let url = format!("http://127.0.0.1:{port}{path}");
    let own = arguments.iter().position(|argument| *argument == "--").unwrap_or(arguments.len());
    let (own, of_script) = arguments.split_at(own);
    let command = Command::new("wrk", own).argument(&url).arguments(of_script);
    let output = command.output()?;
    match sample_of_wrk(&output) {
        Some(sample) if !output.contains("Non-2xx") => Ok(sample),
        _ => Err(Failure::new(format!("wrk on {path} says {output}"))),
    }
}

/// Seconds that what answers one HTTP request has measured of itself: the number that its answer ends with.
pub(super) fn seconds_in_answer(port: u16, method: &str, path: &str) -> Outcome<f64> {
    let request =
        format!("{method} {path} HTTP/1.0\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n");
    let answer = answer_to(port, &request, || format!("{method} {path}"))?;
    last_number(&answer)
        .filter(|_| answer.split(' ').nth(1) == Some("200"))
        .ok_or_else(|| Failure::new(format!("{method} {path} answered {answer}")))
}

/// All that a server sends for one request, up to the end of the connection.
fn answer_to(port: u16, request: &str, what: impl Fn() -> String) -> Outcome<String> {
    let mut stream = connect(port)?;
    let mut answer = String::new();
    stream
        .write_all(request.as_bytes())
        .and_then(|()| stream.read_to_string(&mut answer))
        .map_err(Failure::of(what()))?;
    Ok(answer)
}

/// The number that a text ends with, whatever stands behind it.
pub(super) fn last_number(text: &str) -> Option<f64> {
    let is_of_number = |c: char| c.is_ascii_digit() || c == '.';
    text.rsplit(|c| !is_of_number(c)).find(|part| !part.is_empty())?.parse().ok()
}

/// Seconds from sending one command of the Redis protocol to the first line of its answer.
pub(super) fn redis_command(port: u16, words: &[&str]) -> Outcome<Sample> {
    let mut request = format!("*{}\r\n", words.len());
    for word in words {
        request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    let start = Instant::now();
    let mut stream = connect(port)?;
    let mut answer = String::new();
    stream
        .write_all(request.as_bytes())
        .and_then(|()| BufReader::new(&stream).read_line(&mut answer))
        .map_err(Failure::of(words[0]))?;
    let took = start.elapsed().as_secs_f64();
    if answer.starts_with('-') || answer.is_empty() {
        return Err(Failure::new(format!("{} answered {answer:?}", words[0])));
    }
    Ok(Sample::of(took, 1.0))
}

/// A connection to a server of this machine.
pub(super) fn connect(port: u16) -> Outcome<TcpStream> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port));
    let stream = stream.map_err(Failure::of(format!("cannot connect to port {port}")))?;
    stream.set_read_timeout(Some(ANSWER_TIME_MAX)).map_err(Failure::of("cannot set a time-out"))?;
    Ok(stream)
}

/// The second column of the only line that is not the head.
fn requests_per_second_of_csv(csv: &str) -> Option<f64> {
    let line = csv.lines().find(|line| line.starts_with('"') && !line.starts_with("\"test\""))?;
    line.split("\",\"").nth(1)?.trim_matches('"').parse().ok()
}

/// Of lines such as `99.902% <= 1.367 milliseconds (cumulative count 99905)`, of which there is one for each half
/// of what is left; others have percentages of round times.
fn tail_of_percentiles(output: &str) -> Option<Tail> {
    const NEARLY_ALL: f64 = 99.9;
    let listed = output.split("Latency by percentile distribution:").nth(1)?;
    let listed = listed.split("Cumulative distribution").next()?;
    let of_line = |line: &str| -> Option<(f64, f64)> {
        let (percent, rest) = line.split_once("% <= ")?;
        Some((percent.trim().parse().ok()?, rest.split(' ').next()?.parse().ok()?))
    };
    let listed: Vec<(f64, f64)> = listed.lines().filter_map(of_line).collect();
    let nearly_all = listed.iter().find(|(percent, _)| *percent >= NEARLY_ALL)?;
    Some(Tail { nearly_all_ms: nearly_all.1, worst_ms: listed.last()?.1 })
}

/// Of lines such as `236203 requests in 2.00s, 33.79MB read` and `Requests/sec: 117936.36`.
fn sample_of_wrk(output: &str) -> Option<Sample> {
    let rate = output.lines().find_map(|line| line.strip_prefix("Requests/sec:"))?;
    let requests = output.lines().find_map(|line| line.split_once(" requests in "))?.0;
    Some(Sample::of(rate.trim().parse().ok()?, requests.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_read_from_the_line_below_the_head() {
        let csv = "\"test\",\"rps\",\"avg_latency_ms\"\n\"GET\",\"91743.12\",\"0.287\"\n";
        assert_eq!(requests_per_second_of_csv(csv), Some(91743.12));
        assert_eq!(requests_per_second_of_csv("Could not connect"), None);
    }

    #[test]
    fn the_tail_is_read_from_the_percentiles_and_not_from_the_round_times() {
        let output = "Latency by percentile distribution:\n\
                      99.805% <= 1.1 milliseconds (cumulative count 4991)\n\
                      99.902% <= 2.303 milliseconds (cumulative count 4996)\n\
                      100.000% <= 31.5 milliseconds (cumulative count 5000)\n\
                      100.000% <= 40.511 milliseconds (cumulative count 5000)\n\n\
                      Cumulative distribution of latencies:\n\
                      100.000% <= 41.103 milliseconds (cumulative count 5000)\n";
        let expected = Tail { nearly_all_ms: 2.303, worst_ms: 40.511 };
        assert_eq!(tail_of_percentiles(output), Some(expected));
        assert_eq!(tail_of_percentiles("Could not connect"), None);
    }

    #[test]
    fn the_last_number_is_read_whatever_is_around_it() {
        assert_eq!(last_number("{\"result\":{\"seconds\":\"0.18\"}}\n"), Some(0.18));
        assert_eq!(last_number("none"), None);
    }

    #[test]
    fn wrk_tells_how_many_requests_it_made() {
        let output = "Running 2s test\n  236203 requests in 2.00s, 33.79MB read\n\
                      Requests/sec: 117936.36\nTransfer/sec:     16.87MB\n";
        assert_eq!(sample_of_wrk(output), Some(Sample::of(117_936.36, 236_203.0)));
        assert_eq!(sample_of_wrk("unable to connect"), None);
    }
}
