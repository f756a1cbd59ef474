//! The cost of the Redis codec alone, without sockets: `cargo bench -p tokaido-wire`.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tokaido_wire::resp::{
    Decoded, Limits, ReplyDecoder, ReplyWriter, RequestDecoder, Version, encode_command,
};

/// Requests or replies of one pass: about as many as one read of a busy socket returns.
const PIPELINE_LEN: usize = 256;

/// Decodes all requests and looks at each argument, to include the cost of finding it.
fn decode_pipeline(decoder: &mut RequestDecoder, mut input: &[u8]) -> usize {
    let mut bytes = 0;
    while let Ok(Decoded::Complete { consumed }) = decoder.decode(input) {
        let request = decoder.request(input);
        bytes += request.iter().map(<[u8]>::len).sum::<usize>();
        input = &input[consumed..];
    }
    bytes
}

fn requests(criterion: &mut Criterion) {
    let mut gets = Vec::new();
    let mut sets = Vec::new();
    for number in 0..PIPELINE_LEN {
        let key = format!("key:{number:012}");
        encode_command(&mut gets, &["GET", &key]);
        encode_command(&mut sets, &["SET", &key, &"x".repeat(64)]);
    }
    let inline = b"PING\r\n".repeat(PIPELINE_LEN);
    let mut group = criterion.benchmark_group("resp/decode");
    group.throughput(Throughput::Elements(PIPELINE_LEN as u64));
    for (name, input) in [("get", &gets), ("set", &sets), ("inline ping", &inline)] {
        let mut decoder = RequestDecoder::new(Limits::default());
        group.bench_function(name, |b| {
            b.iter(|| decode_pipeline(&mut decoder, black_box(input)));
        });
    }
    group.finish();
}

fn replies(criterion: &mut Criterion) {
    let value = [b'x'; 64];
    let mut out = Vec::new();
    let mut group = criterion.benchmark_group("resp/write");
    group.throughput(Throughput::Elements(PIPELINE_LEN as u64));
    group.bench_function("bulk of 64 bytes", |b| {
        b.iter(|| {
            out.clear();
            let mut writer = ReplyWriter::new(&mut out, Version::Resp2);
            for _ in 0..PIPELINE_LEN {
                writer.bulk(black_box(&value));
            }
            black_box(&out);
        });
    });
    group.bench_function("integer", |b| {
        b.iter(|| {
            out.clear();
            let mut writer = ReplyWriter::new(&mut out, Version::Resp2);
            for number in 0..PIPELINE_LEN as i64 {
                writer.integer(black_box(number * 1001));
            }
            black_box(&out);
        });
    });
    group.finish();

    out.clear();
    let mut writer = ReplyWriter::new(&mut out, Version::Resp2);
    (0..PIPELINE_LEN).for_each(|_| writer.bulk(&value));
    let mut group = criterion.benchmark_group("resp/decode reply");
    group.throughput(Throughput::Elements(PIPELINE_LEN as u64));
    group.bench_function("bulk of 64 bytes", |b| {
        let mut decoder = ReplyDecoder::new();
        b.iter(|| {
            let mut input = black_box(&out[..]);
            while let Ok(Some((reply, len))) = decoder.decode(input) {
                black_box(reply);
                input = &input[len..];
            }
        });
    });
    group.finish();
}

criterion_group!(benches, requests, replies);
criterion_main!(benches);
