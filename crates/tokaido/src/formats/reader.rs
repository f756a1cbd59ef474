//! Reads rows of any format from a stream, reporting bad ones one by one.

use std::{
    io::{self, BufRead},
    path::Path,
};

use tokaido_store::limits;

use super::{
    columns::{Columns, Selection, SelectionError},
    csv::CsvParser,
    format::Format,
    jsonl,
    lines::{Ending, LINE_LEN_MAX, Line, LineReader},
    memcached, pairs,
    row::{BadRow, Reason, Row},
    tsv, tyrant,
};

/// How to read a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    /// `None`: guess it.
    pub(crate) format: Option<Format>,
    /// The first line names the columns.
    pub(crate) header: bool,
    /// A column's number or name, or a field.
    pub(crate) key: Option<String>,
    pub(crate) values: Option<Vec<String>>,
    /// Lines that start with this are skipped.
    pub(crate) comment: Option<String>,
    /// Put before every key.
    pub(crate) prefix: Vec<u8>,
}

/// A file cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Selection(#[from] SelectionError),
    #[error("--{option} does not go with the format {format}; leave it out, or give --format")]
    Option { option: &'static str, format: &'static str },
    #[error("the header is no row: {0}")]
    Header(BadRow),
}

enum Parser {
    Tsv(Selection),
    Csv(Selection),
    Jsonl(jsonl::Fields),
    Pairs,
    MemcachedDump,
    TyrantTsv,
}

/// Reads rows.
pub(crate) struct RowReader<R> {
    lines: LineReader<R>,
    parser: Parser,
    comment: Option<Vec<u8>>,
    prefix: Vec<u8>,
    line: Vec<u8>,
    columns: Columns,
    comments: u64,
}

impl<R: BufRead> RowReader<R> {
    /// Examines the start of the input, and reads its header if it has one.
    pub(crate) fn new(input: R, path: Option<&Path>, options: &Options) -> Result<Self, ReadError> {
        let mut lines = LineReader::new(input);
        let format = match options.format {
            Some(format) => format,
            None => Format::guess(path, lines.peek()?),
        };
        let mut reader = Self {
            lines,
            parser: Parser::Pairs,
            comment: options.comment.clone().map(String::into_bytes),
            prefix: options.prefix.clone(),
            line: Vec::new(),
            columns: Columns::default(),
            comments: 0,
        };
        reader.parser = reader.make_parser(format, options)?;
        Ok(reader)
    }

    fn make_parser(&mut self, format: Format, options: &Options) -> Result<Parser, ReadError> {
        let refuse = |given: bool, option, format| {
            if given { Err(ReadError::Option { option, format }) } else { Ok(()) }
        };
        let (key, values) = (options.key.as_deref(), options.values.as_deref());
        match format {
            Format::Tsv | Format::Csv => {
                let is_csv = format == Format::Csv;
                let header = options.header.then(|| self.read_header(is_csv)).transpose()?;
                let selection = Selection::resolve(key, values, header.as_ref())?;
                Ok(if is_csv { Parser::Csv(selection) } else { Parser::Tsv(selection) })
            }
            Format::Jsonl => {
                refuse(options.header, "header", "jsonl")?;
                let key = key.map(str::to_owned);
                Ok(Parser::Jsonl(match (key, values.map(<[String]>::to_vec)) {
                    (None, None) => jsonl::Fields::Dumped,
                    (key, values) => jsonl::Fields::Chosen {
                        key: key.unwrap_or_else(|| "key".to_owned()),
                        values,
                    },
                }))
            }
            Format::Pairs | Format::MemcachedDump | Format::TyrantTsv => {
                let (name, parser) = match format {
                    Format::Pairs => ("pairs", Parser::Pairs),
                    Format::TyrantTsv => ("tyrant-tsv", Parser::TyrantTsv),
                    _ => ("memcached-dump", Parser::MemcachedDump),
                };
                refuse(options.header, "header", name)?;
                refuse(key.is_some(), "key", name)?;
                refuse(values.is_some(), "value", name)?;
                Ok(parser)
            }
        }
    }

    /// The columns of the first line that is not a comment; none in an empty file.
    fn read_header(&mut self, is_csv: bool) -> Result<Columns, ReadError> {
        if let Some(line) = self.next_line()? {
            let mut columns = Columns::default();
            let read = match line {
                Line::TooLong => Err(Reason::LineTooLong),
                Line::Whole(ending) if is_csv => self.read_csv(ending, &mut columns)?,
                Line::Whole(_) => {
                    tsv::split(&self.line, &mut columns);
                    Ok(())
                }
            };
            let line = self.lines.number();
            read.map_err(|reason| ReadError::Header(BadRow { line, reason }))?;
            return Ok(columns);
        }
        Ok(Columns::default())
    }

    /// Bytes read so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.lines.bytes()
    }

    /// Lines skipped as comments.
    pub(crate) fn comments(&self) -> u64 {
        self.comments
    }

    /// Reads the next row into `row`; `None` at the end.
    pub(crate) fn read(&mut self, row: &mut Row) -> io::Result<Option<Result<(), BadRow>>> {
        let Some(line) = self.next_line()? else {
            return Ok(None);
        };
        let first = self.lines.number();
        let parsed = match line {
            Line::TooLong => Err(Reason::LineTooLong),
            Line::Whole(ending) => self.parse(ending, row)?,
        };
        let checked = parsed.and_then(|()| {
            if !row.key.is_empty() {
                row.key.splice(..0, self.prefix.iter().copied());
            }
            row.check()
        });
        Ok(Some(checked.map_err(|reason| BadRow { line: first, reason })))
    }

    /// Reads up to the next line that is not a comment, into `self.line`.
    fn next_line(&mut self) -> io::Result<Option<Line>> {
        loop {
            let line = self.lines.read(&mut self.line)?;
            let is_comment = match (&self.comment, line) {
                (Some(start), Some(Line::Whole(_))) => self.line.starts_with(start),
                _ => false,
            };
            if !is_comment {
                return Ok(line);
            }
            self.comments += 1;
        }
    }

    fn parse(&mut self, ending: Ending, row: &mut Row) -> io::Result<Result<(), Reason>> {
        if self.line.is_empty() {
            return Ok(Err(Reason::Blank));
        }
        match &mut self.parser {
            Parser::Tsv(selection) => {
                tsv::split(&self.line, &mut self.columns);
                Ok(selection.apply(&self.columns, row))
            }
            Parser::Jsonl(fields) => Ok(jsonl::parse(&self.line, fields, row)),
            Parser::Pairs => Ok(pairs::parse(&self.line, row)),
            Parser::MemcachedDump => self.parse_memcached(row),
            Parser::TyrantTsv => Ok(tyrant::parse(&self.line, ending, row)),
            Parser::Csv(_) => self.parse_csv(ending, row),
        }
    }

    /// Reads the value after the line in `self.line`. One that is too long is not kept.
    fn parse_memcached(&mut self, row: &mut Row) -> io::Result<Result<(), Reason>> {
        let len = match memcached::parse_head(&self.line, row) {
            Ok(len) => len,
            Err(reason) => return Ok(Err(reason)),
        };
        let is_kept = len <= limits::VALUE_LEN_MAX as u64;
        let is_whole = self.lines.read_block(len, is_kept.then_some(&mut row.value))?
            && self.lines.read(&mut self.line)?.is_some_and(|line| matches!(line, Line::Whole(_)))
            && self.line.is_empty();
        Ok(match (is_whole, is_kept) {
            (true, true) => Ok(()),
            (true, false) => Err(Reason::ValueTooLong { len: len as usize }),
            (false, _) => Err(Reason::BadBlock),
        })
    }

    fn parse_csv(&mut self, ending: Ending, row: &mut Row) -> io::Result<Result<(), Reason>> {
        // They are moved out of `self` meanwhile, since reading on borrows all of it.
        let mut columns = std::mem::take(&mut self.columns);
        let read = self.read_csv(ending, &mut columns);
        self.columns = columns;
        let Parser::Csv(selection) = &self.parser else {
            unreachable!("only a CSV file is read as one");
        };
        Ok(read?.and_then(|()| selection.apply(&self.columns, row)))
    }

    /// Reads the rest of a row whose first line is in `self.line`.
    fn read_csv(
        &mut self,
        mut ending: Ending,
        columns: &mut Columns,
    ) -> io::Result<Result<(), Reason>> {
        columns.clear();
        let mut parser = CsvParser::new();
        loop {
            match parser.feed(&self.line, ending, columns) {
                Ok(true) => return Ok(Ok(())),
                Ok(false) => {}
                Err(reason) => return Ok(Err(reason)),
            }
            if columns.byte_len() > LINE_LEN_MAX {
                return Ok(Err(Reason::OpenQuote { end: self.lines.number() }));
            }
            ending = match self.lines.read(&mut self.line)? {
                Some(Line::Whole(ending)) => ending,
                Some(Line::TooLong) => return Ok(Err(Reason::LineTooLong)),
                None => return Ok(Err(Reason::OpenQuote { end: self.lines.number() })),
            };
        }
    }
}
