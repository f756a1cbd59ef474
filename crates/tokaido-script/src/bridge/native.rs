//! The list of native functions, and the only place where their arguments come from Lua.
//!
//! Both the C function and the C type that Lua casts its address to are made from the list, so the
//! two sides cannot disagree.

use std::{
    ffi::c_void,
    panic::{AssertUnwindSafe, catch_unwind},
};

use super::{
    Context, apache, cabinet, cache, call,
    collections::{hash, list, set, sorted_set, stream, stream_group},
    command,
    context::Fault,
    databases, exchange, handler, many,
    openresty::{dictionary, regex, sockets, text},
    pages, random, read, scan, script, timers, tyrant, write,
};

/// What `ffi.cast` needs to make an address callable.
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) c_type: &'static str,
    pub(crate) address: *mut c_void,
}

/// Makes the C function around a function of the bridge. It turns pointers and lengths into slices,
/// and any outcome into a code. Parameters are taken one by one; each kind adds what C passes for
/// it, the argument made from that, and the C types.
macro_rules! native {
    (@ $function:path, $name:ident [] [$($passed:ident: $type:ty,)*] [$($argument:expr,)*] [$($c_type:literal)*]) => {{
        unsafe extern "C" fn $name(context: *mut Context $(, $passed: $type)*) -> i32 {
            // SAFETY: only the prelude has the address. It calls with the VM's context, which no
            // other code borrows while Lua runs, and with Lua strings, whose pointers and lengths
            // match and which live until the call returns. A pointer with a negative length is not
            // dereferenced.
            unsafe { run(context, |context| $function(context $(, $argument)*)) }
        }
        Function {
            name: stringify!($name),
            c_type: concat!("int32_t (*)(void *" $(, ", ", $c_type)*, ")"),
            address: $name as *mut c_void,
        }
    }};
    (@ $f:path, $n:ident [bytes $($rest:ident)*] [$($p:tt)*] [$($a:tt)*] [$($c:tt)*]) => {
        native!(@ $f, $n [$($rest)*] [$($p)* data: *const u8, len: u32,] [$($a)* bytes(data, len),]
            [$($c)* "const char *, uint32_t"])
    };
    // A negative length means no string.
    (@ $f:path, $n:ident [optional $($rest:ident)*] [$($p:tt)*] [$($a:tt)*] [$($c:tt)*]) => {
        native!(@ $f, $n [$($rest)*] [$($p)* data: *const u8, len: i32,]
            [$($a)* u32::try_from(len).ok().map(|len| bytes(data, len)),]
            [$($c)* "const char *, int32_t"])
    };
    (@ $f:path, $n:ident [int $($rest:ident)*] [$($p:tt)*] [$($a:tt)*] [$($c:tt)*]) => {
        native!(@ $f, $n [$($rest)*] [$($p)* int: i32,] [$($a)* int,] [$($c)* "int32_t"])
    };
    (@ $f:path, $n:ident [long $($rest:ident)*] [$($p:tt)*] [$($a:tt)*] [$($c:tt)*]) => {
        native!(@ $f, $n [$($rest)*] [$($p)* long: i64,] [$($a)* long,] [$($c)* "int64_t"])
    };
    (@ $f:path, $n:ident [double $($rest:ident)*] [$($p:tt)*] [$($a:tt)*] [$($c:tt)*]) => {
        native!(@ $f, $n [$($rest)*] [$($p)* double: f64,] [$($a)* double,] [$($c)* "double"])
    };
    ($($module:ident :: $name:ident ( $($kind:ident),* );)*) => {
        vec![$(native!(@ $module::$name, $name [$($kind)*] [] [] [])),*]
    };
}

/// Every native function with its parameters.
pub(crate) fn functions() -> Vec<Function> {
    let mut functions = of_databases();
    functions.extend(of_guests());
    functions.extend(of_collections());
    functions.extend(of_exchanges());
    functions.extend(of_openresty());
    functions
}

fn of_databases() -> Vec<Function> {
    native! {
        databases::open(bytes);
        databases::drop_database(bytes);
        databases::writable();
        databases::now();
        databases::number_text(double);
        databases::log(int, bytes);
        random::random_bytes(double);
        random::uuid();
        random::seeded();
        read::get(int, bytes);
        read::exists(int, bytes);
        read::record(int, bytes);
        read::statistics(int);
        many::many_begin();
        many::many_add(bytes);
        many::many_run(int);
        many::many_next();
        many::all_run(int, bytes);
        call::call_failed(bytes);
        command::command_run();
        command::command_of(int, bytes, bytes, bytes, bytes, bytes, bytes);
        command::set_resp(int);
        command::may_run();
        command::sha1_hex(bytes);
        pages::page_load(int, double, int, int);
        pages::page_next();
        scan::scan_ahead(int, bytes, bytes, int);
        write::put(int, bytes, bytes);
        write::put_with(int, bytes, bytes, double, double, int);
        write::put_same(int, bytes, optional, bytes, double, double);
        write::swap(int, bytes, optional, optional);
        write::delete(int, bytes);
        write::increment(int, bytes, long);
        write::increment_float(int, bytes, double);
        write::append(int, bytes, bytes);
        write::expire(int, bytes, double);
        write::clear(int);
        cache::cache_get(int, bytes);
        cache::cache_exists(int, bytes);
        cache::cache_record(int, bytes);
        cache::cache_put(int, bytes, bytes);
        cache::cache_put_with(int, bytes, bytes, double, double, int);
        cache::cache_put_same(int, bytes, optional, bytes, double, double);
        cache::cache_swap(int, bytes, optional, optional);
        cache::cache_delete(int, bytes);
        cache::cache_increment(int, bytes, long);
        cache::cache_increment_float(int, bytes, double);
        cache::cache_append(int, bytes, bytes);
        cache::cache_expire(int, bytes, double);
        cache::cache_clear(int);
        script::begin_write();
        script::begin_read();
        script::commit();
        script::rollback();
    }
}

fn of_guests() -> Vec<Function> {
    native! {
        cabinet::cabinet_time();
        cabinet::cabinet_hash(int, bytes);
        cabinet::cabinet_distance(bytes, bytes, int);
        cabinet::cabinet_codec(bytes, bytes);
        cabinet::cabinet_regex(bytes, bytes, optional);
        cabinet::cabinet_sum(bytes, double, double);
        tyrant::tyrant_regex(bytes, bytes, optional);
        tyrant::tyrant_codec(bytes, bytes);
        tyrant::tyrant_hash(int, bytes);
        tyrant::tyrant_misc(bytes);
        tyrant::tyrant_is_table();
        tyrant::stash_put(bytes, bytes, int);
        tyrant::stash_out(bytes);
        tyrant::stash_get(bytes);
        tyrant::stash_vanish();
        tyrant::stash_next(optional);
        tyrant::lock_take(bytes);
        tyrant::lock_free(bytes);
        tyrant::iterator_begin(int);
        tyrant::iterator_next(int);
    }
}

fn of_exchanges() -> Vec<Function> {
    native! {
        exchange::request_field(int);
        exchange::request_pairs(int);
        exchange::request_pair(int);
        exchange::response_header(bytes, bytes, int);
        exchange::response_header_get(bytes);
        exchange::response_write(bytes);
        exchange::response_write_line(bytes);
        exchange::response_clear();
        exchange::respond(int, int, bytes);
        handler::request_end(int);
        handler::request_line();
        handler::request_header(bytes);
        handler::response_header_remove(bytes);
        handler::response_header_at(bytes, int);
        handler::response_sent(int);
        handler::response_flush(int);
        handler::response_gone();
        handler::response_complete();
        handler::response_tells_failure();
        handler::response_drop();
        handler::response_len();
        handler::response_forget();
        handler::response_nest();
        handler::response_select(int);
        handler::response_unnest(int);
        handler::clock();
        handler::may_wait();
        handler::wait(double);
        timers::timer_make(double);
        timers::timer_run(double);
        timers::timer_counts();
        apache::apache_text(int, bytes);
        apache::apache_date(bytes);
        apache::apache_wildcard(bytes, bytes, int);
        apache::apache_regex_compile(bytes, bytes);
        apache::apache_clock();
        apache::apache_started();
        apache::apache_body_max();
        apache::apache_pairs(int, bytes, bytes);
        apache::apache_value(bytes);
        apache::apache_set_value(bytes, int, double, bytes);
        apache::apache_root();
        apache::apache_file(bytes);
        apache::apache_stat(bytes);
    }
}

fn of_collections() -> Vec<Function> {
    native! {
        hash::hash_get(int, bytes, bytes);
        hash::hash_has(int, bytes, bytes);
        hash::hash_get_many(int, bytes);
        hash::hash_count(int, bytes);
        hash::hash_set(int, bytes, bytes, bytes);
        hash::hash_add(int, bytes, bytes, bytes);
        hash::hash_delete(int, bytes, bytes);
        hash::hash_increment(int, bytes, bytes, long);
        hash::hash_increment_float(int, bytes, bytes, double);
        hash::hash_random(int, bytes);
        hash::hash_page(int, bytes, optional, int);
        list::list_count(int, bytes);
        list::list_get(int, bytes, double);
        list::list_push(int, bytes, int, bytes);
        list::list_pop(int, bytes, int);
        list::list_set(int, bytes, double, bytes);
        list::list_insert(int, bytes, double, bytes);
        list::list_remove(int, bytes, double);
        list::list_trim(int, bytes, double, double);
        list::list_find(int, bytes, bytes);
        list::list_range(int, bytes, double, double);
        list::list_page(int, bytes, double, double, int, int);
        set::set_has(int, bytes, bytes);
        set::set_count(int, bytes);
        set::set_add(int, bytes, bytes);
        set::set_remove(int, bytes, bytes);
        set::set_pop(int, bytes);
        set::set_random(int, bytes);
        set::set_page(int, bytes, optional, int);
        set::set_replace(int, bytes);
        set::set_gather(int, bytes);
        set::set_combine(int);
        sorted_set::sorted_count(int, bytes);
        sorted_set::sorted_count_in(int, bytes, int, double, double);
        sorted_set::sorted_score(int, bytes, bytes);
        sorted_set::sorted_rank(int, bytes, bytes, int);
        sorted_set::sorted_add(int, bytes, bytes, double);
        sorted_set::sorted_increment(int, bytes, bytes, double);
        sorted_set::sorted_remove(int, bytes, bytes);
        sorted_set::sorted_remove_in(int, bytes, int, double, double, double, double);
        sorted_set::sorted_pop(int, bytes, int);
        sorted_set::sorted_random(int, bytes);
        sorted_set::sorted_page(int, bytes, int, double, double, optional, double, int);
        sorted_set::sorted_page_of_members(int, bytes, int, bytes, bytes, optional, double, int);
        stream::stream_count(int, bytes);
        stream::stream_last_id(int, bytes);
        stream::stream_get(int, bytes, bytes);
        stream::stream_add(int, bytes, optional);
        stream::stream_delete(int, bytes, bytes);
        stream::stream_trim(int, bytes, double, optional);
        stream::stream_page(int, bytes, int, optional, optional, int);
        stream_group::group_exists(int, bytes, bytes);
        stream_group::group_create(int, bytes, bytes, optional);
        stream_group::group_destroy(int, bytes, bytes);
        stream_group::group_read(int, bytes, bytes, bytes, double);
        stream_group::group_acknowledge(int, bytes, bytes, bytes);
        stream_group::group_claim(int, bytes, bytes, bytes, bytes, double);
        stream_group::group_pending(int, bytes, bytes, optional, int, optional, optional, double, double);
        stream_group::group_summary(int, bytes, bytes);
    }
}

fn of_openresty() -> Vec<Function> {
    native! {
        regex::regex_compile(bytes, bytes);
        regex::regex_set_stack(double);
        regex::regex_deep(int, bytes, int);
        regex::regex_dfa(int, bytes, int);
        dictionary::dict_open(bytes);
        dictionary::dict_names();
        dictionary::dict_get(int, bytes);
        dictionary::dict_put(int, bytes, int, bytes, double, double, double, int);
        dictionary::dict_incr(int, bytes, double, int, double, double);
        dictionary::dict_delete(int, bytes);
        dictionary::dict_push(int, bytes, int, int, bytes, double);
        dictionary::dict_pop(int, bytes, int);
        dictionary::dict_len(int, bytes);
        dictionary::dict_ttl(int, bytes);
        dictionary::dict_expire(int, bytes, double);
        dictionary::dict_flush_all(int);
        dictionary::dict_flush_expired(int, double);
        dictionary::dict_keys(int, double);
        dictionary::dict_size(int);
        sockets::socket_connect(bytes, int, bytes, double);
        sockets::socket_connected(int);
        sockets::socket_send(int, bytes, double);
        sockets::socket_receive(int, int, double, bytes);
        sockets::socket_give_up(int, int, double, bytes);
        sockets::socket_close(int);
        sockets::socket_keep(int, double, double);
        sockets::socket_option(int, int, double);
        sockets::socket_wake(double);
        text::ngx_escape_uri(bytes, int);
        text::ngx_unescape_uri(bytes);
        text::ngx_encode_base64(bytes, int, int);
        text::ngx_decode_base64(bytes, int);
        text::ngx_quote_sql(bytes);
        text::ngx_digest(bytes, bytes);
        text::ngx_hmac_sha1(bytes, bytes);
        text::ngx_crc32(bytes);
        text::ngx_time_ms();
    }
}

/// The bytes of a Lua string.
///
/// # Safety
/// `data` and `len` must belong to a Lua string that lives until the native call returns.
unsafe fn bytes<'s>(data: *const u8, len: u32) -> &'s [u8] {
    // SAFETY: promised by the caller.
    unsafe { std::slice::from_raw_parts(data, len as usize) }
}

/// Runs the body of a native function, and turns faults and panics into a code.
///
/// # Safety
/// `context` must be the VM's own, and nothing else may borrow it.
#[inline]
unsafe fn run(context: *mut Context, body: impl FnOnce(&mut Context) -> Result<i32, Fault>) -> i32 {
    // SAFETY: promised by the caller.
    let context = unsafe { &mut *context };
    match catch_unwind(AssertUnwindSafe(|| body(context))) {
        Ok(Ok(code)) => code,
        Ok(Err(fault)) => context.fail(fault),
        Err(_) => context.fail(Fault::Poisoned(
            "a database call panicked, which is a fault of tokaido; please report it".to_owned(),
        )),
    }
}
