//! The client's side of a request.

use super::reply_writer::{CRLF, write_length};

/// Appends a command, its name first, as the array of bulk strings that servers expect.
pub fn encode_command(out: &mut Vec<u8>, arguments: &[impl AsRef<[u8]>]) {
    write_length(out, b'*', arguments.len());
    for argument in arguments {
        let bytes = argument.as_ref();
        write_length(out, b'$', bytes.len());
        out.extend_from_slice(bytes);
        out.extend_from_slice(CRLF);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_an_array_of_bulk_strings() {
        let mut out = b"before".to_vec();
        encode_command(&mut out, &["SET", "key", ""]);
        assert_eq!(out, b"before*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$0\r\n\r\n");
    }
}
