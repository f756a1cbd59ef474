//! What `ngx.socket` needs from the sockets of the request.

use std::task::Poll;

use super::super::context::{Context, Fault, NO, YES};
use crate::{
    Sockets,
    sockets::{Receive, Received, SocketOption, SocketTarget},
};

/// It failed as calls of `ngx.socket` fail: the reply's key is the message, its data what has come.
const ERROR: i32 = 4;

fn sockets<'s>(context: &mut Context) -> Result<&'s mut (dyn Sockets + 's), Fault> {
    let host = context.host()?.0;
    host.sockets().ok_or_else(|| {
        Fault::refused("a socket is for a handler that a worker runs, and no transaction")
    })
}

fn failed(context: &mut Context, message: String) -> i32 {
    context.message = message.into_bytes();
    context.reply.key(&context.message);
    ERROR
}

fn number_of(socket: i32) -> u32 {
    u32::try_from(socket).unwrap_or(u32::MAX)
}

/// Begins to connect; the reply's number is the socket's. A path has a negative port, and a datagram socket a pool of
/// size 0.
pub(crate) fn socket_connect(
    context: &mut Context,
    host: &[u8],
    port: i32,
    pool: &[u8],
    pool_size: f64,
) -> Result<i32, Fault> {
    let host = str::from_utf8(host).map_err(|_| Fault::refused("the host is not UTF-8"))?;
    let port = u16::try_from(port).ok();
    let (pool_size, is_of_datagrams) = (pool_size as usize, pool_size < 1.0);
    let target = SocketTarget { is_of_datagrams, host, port, pool, pool_size };
    match sockets(context)?.connect(target) {
        Ok(socket) => {
            context.reply.number = f64::from(socket);
            Ok(YES)
        }
        Err(message) => Ok(failed(context, message)),
    }
}

/// Whether it is connected; the reply's number is how often the connection was used before.
pub(crate) fn socket_connected(context: &mut Context, socket: i32) -> Result<i32, Fault> {
    Ok(match sockets(context)?.connected(number_of(socket)) {
        Poll::Pending => NO,
        Poll::Ready(Ok(times)) => {
            context.reply.number = f64::from(times);
            YES
        }
        Poll::Ready(Err(message)) => failed(context, message),
    })
}

/// Sends a text from that byte on; the reply's number is how many bytes were sent.
pub(crate) fn socket_send(
    context: &mut Context,
    socket: i32,
    text: &[u8],
    from: f64,
) -> Result<i32, Fault> {
    let rest = text.get(from as usize..).unwrap_or_default();
    Ok(match sockets(context)?.send(number_of(socket), rest) {
        Poll::Pending => NO,
        Poll::Ready(Ok(sent)) => {
            context.reply.number = sent as f64;
            YES
        }
        Poll::Ready(Err(message)) => failed(context, message),
    })
}

/// What to receive, as `lua/ngx/sockets.lua` numbers it.
fn what(kind: i32, size: f64, text: &[u8]) -> Receive<'_> {
    let size = size as usize;
    match kind {
        0 => Receive::Size(size),
        1 => Receive::Line,
        2 => Receive::All,
        3 => Receive::Any(size),
        6 => Receive::Datagram(size),
        _ => Receive::Until { text, size, inclusive: kind == 5 },
    }
}

/// Receives; the reply's number is whether this is only a part, or how much has come if it is not enough yet.
pub(crate) fn socket_receive(
    context: &mut Context,
    socket: i32,
    kind: i32,
    size: f64,
    text: &[u8],
) -> Result<i32, Fault> {
    let sockets = sockets(context)?;
    context.scratch.clear();
    let received = sockets.receive(number_of(socket), what(kind, size, text), &mut context.scratch);
    context.reply.data(&context.scratch);
    Ok(match received {
        Poll::Pending => {
            context.reply.number = sockets.buffered(number_of(socket)) as f64;
            NO
        }
        Poll::Ready(Ok(received)) => {
            context.reply.number = f64::from(received == Received::Part);
            YES
        }
        Poll::Ready(Err(message)) => failed(context, message),
    })
}

/// Gives up receiving; the reply's data is what has come.
pub(crate) fn socket_give_up(
    context: &mut Context,
    socket: i32,
    kind: i32,
    size: f64,
    text: &[u8],
) -> Result<i32, Fault> {
    let sockets = sockets(context)?;
    Ok(context.answer(|out| sockets.give_up(number_of(socket), what(kind, size, text), out)))
}

/// Closes it.
pub(crate) fn socket_close(context: &mut Context, socket: i32) -> Result<i32, Fault> {
    sockets(context)?.close(number_of(socket));
    Ok(YES)
}

/// Returns it to its pool.
pub(crate) fn socket_keep(
    context: &mut Context,
    socket: i32,
    time_ms: f64,
    pool_size: f64,
) -> Result<i32, Fault> {
    let pool_size = (pool_size > 0.0).then_some(pool_size as usize);
    match sockets(context)?.keep(number_of(socket), time_ms as u64, pool_size) {
        Ok(()) => Ok(YES),
        Err(message) => Ok(failed(context, message)),
    }
}

/// Sets an option.
pub(crate) fn socket_option(
    context: &mut Context,
    socket: i32,
    option: i32,
    value: f64,
) -> Result<i32, Fault> {
    let option = match option {
        0 => SocketOption::KeepAlive,
        1 => SocketOption::ReuseAddress,
        2 => SocketOption::NoDelay,
        3 => SocketOption::SendBuffer,
        _ => SocketOption::ReceiveBuffer,
    };
    match sockets(context)?.set_option(number_of(socket), option, value as u32) {
        Ok(()) => Ok(YES),
        Err(message) => Ok(failed(context, message)),
    }
}

/// Resumes the handler that waits in this slot.
pub(crate) fn socket_wake(context: &mut Context, slot: f64) -> Result<i32, Fault> {
    sockets(context)?.wake(slot as u64);
    Ok(YES)
}
