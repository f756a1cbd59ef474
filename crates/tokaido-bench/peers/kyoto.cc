/* Kyoto Cabinet: the loop patterns on a TreeDB file, as benches/store/patterns.lua has them, and
 * the list of companies in a HashDB and a TreeDB file. */

#include "companies.h"

#include <charconv>
#include <kchashdb.h>
#include <string>

using kyotocabinet::HashDB;
using kyotocabinet::TreeDB;

static const int64_t KEYS = 100000;

/* A number as text, by the fastest way that the language has. */
struct Key {
    char text[24];
    size_t len;
    explicit Key(int64_t number, bool is_counter = false)
    {
        char *start = text;
        if (is_counter)
            *start++ = '#';
        len = std::to_chars(start, text + sizeof text, number).ptr - text;
    }
};

static uint32_t state;

static int64_t draw(int64_t n)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return (state & 0x7fffffff) % n;
}

static void open_empty(TreeDB &db)
{
    std::string path = std::string(peer_directory) + "/patterns.kct";
    peer_check(db.open(path, TreeDB::OWRITER | TreeDB::OCREATE | TreeDB::OTRUNCATE), "open");
    state = 88675123;
}

static void traverse(TreeDB &db, bool is_forward)
{
    TreeDB::Cursor *cursor = db.cursor();
    bool is_there = is_forward ? cursor->jump() : cursor->jump_back();
    while (is_there) {
        size_t key_len, value_len;
        const char *value;
        char *key = cursor->get(&key_len, &value, &value_len, is_forward);
        if (!key)
            break;
        peer_sum += key_len + value_len;
        delete[] key;
        if (!is_forward)
            is_there = cursor->step_back();
    }
    delete cursor;
}

static void order(bool is_random, bool has_etc)
{
    TreeDB db;
    char value[200];
    open_empty(db);
    auto next = [&](int64_t i) { return Key(is_random ? draw(KEYS) + 1 : i); };
    peer_start();
    for (int64_t i = 1; i <= KEYS; i++) {
        Key key = next(i);
        peer_check(db.set(key.text, key.len, key.text, key.len), "set");
    }
    if (has_etc) {
        for (int64_t i = 1; i <= KEYS; i++) {
            Key key = next(i);
            peer_sum += db.add(key.text, key.len, key.text, key.len);
        }
        for (int64_t i = 1; i <= KEYS; i++) {
            Key key = next(i);
            peer_check(db.append(key.text, key.len, key.text, key.len), "append");
        }
    }
    for (int64_t i = 1; i <= KEYS; i++) {
        Key key = next(i);
        int32_t len = db.get(key.text, key.len, value, sizeof value);
        if (len >= 0)
            peer_sum += len;
    }
    if (has_etc) {
        traverse(db, true);
        traverse(db, false);
    }
    for (int64_t i = 1; i <= KEYS; i++) {
        Key key = next(i);
        peer_sum += db.remove(key.text, key.len);
    }
    peer_stop(has_etc ? 7 * KEYS : 3 * KEYS);
    db.close();
}

/* Reads a record and puts it back with a sign more, in one visit. */
class Lengthen : public kyotocabinet::DB::Visitor {
    std::string value;
    const char *visit_full(const char *, size_t, const char *found, size_t found_len,
                           size_t *len) override
    {
        value.assign(found, found_len);
        value.push_back('+');
        *len = value.size();
        return value.data();
    }
};

/* Reads a record and steps on; behind the last one, begins again. */
static void step(TreeDB::Cursor *cursor)
{
    size_t key_len, value_len;
    const char *value;
    char *key = cursor->get(&key_len, &value, &value_len, true);
    if (!key)
        cursor->jump();
    delete[] key;
}

static void act(TreeDB &db, TreeDB::Cursor *cursor, int64_t number, int64_t action)
{
    char value[2000];
    Key key(number);
    switch (action) {
    case 0: peer_check(db.set(key.text, key.len, key.text, key.len), "set"); break;
    case 1: peer_sum += db.add(key.text, key.len, key.text, key.len); break;
    case 2: peer_sum += db.replace(key.text, key.len, key.text, key.len); break;
    case 3: peer_check(db.append(key.text, key.len, key.text, key.len), "append"); break;
    case 4: {
        Key counter(number, true);
        peer_sum += db.increment(counter.text, counter.len, draw(10));
        break;
    }
    case 5:
        peer_sum += db.cas(key.text, key.len, key.text, key.len, key.text, key.len);
        break;
    case 6: peer_sum += db.remove(key.text, key.len); break;
    case 7: {
        Lengthen lengthen;
        db.accept(key.text, key.len, &lengthen, true);
        break;
    }
    case 8: step(cursor); break;
    default: {
        int32_t len = db.get(key.text, key.len, value, sizeof value);
        if (len >= 0)
            peer_sum += len;
    }
    }
}

static void wicked(int64_t iterations)
{
    TreeDB db;
    open_empty(db);
    TreeDB::Cursor *cursor = db.cursor();
    peer_start();
    for (int64_t i = 0; i < KEYS * iterations; i++) {
        int64_t number = draw(KEYS) + 1;
        act(db, cursor, number, draw(12));
    }
    peer_stop(KEYS * iterations);
    delete cursor;
    db.close();
}

/* One kind of file, for companies.h. */
template <class Db> struct Companies {
    static void *open(int is_new)
    {
        Db *db = new Db;
        std::string path = std::string(peer_directory) + "/rows." + typeid(Db).name();
        uint32_t mode = is_new ? Db::OWRITER | Db::OCREATE | Db::OTRUNCATE : Db::OREADER;
        peer_check(db->open(path, mode), "open");
        return db;
    }
    static void put(void *store, const struct row *row)
    {
        Db *db = static_cast<Db *>(store);
        peer_check(db->set(row->key, row->key_len, row->value, row->value_len), "set");
    }
    static void read_all(void *store)
    {
        typename Db::Cursor *cursor = static_cast<Db *>(store)->cursor();
        size_t key_len, value_len;
        const char *value;
        cursor->jump();
        while (char *key = cursor->get(&key_len, &value, &value_len, true)) {
            peer_sum += key_len;
            digest(value, value_len);
            delete[] key;
        }
        delete cursor;
    }
    static void get(void *store, const struct row *row)
    {
        size_t len;
        char *value = static_cast<Db *>(store)->get(row->key, row->key_len, &len);
        peer_check(value != NULL, "get");
        digest(value, len);
        delete[] value;
    }
    static void close(void *store)
    {
        Db *db = static_cast<Db *>(store);
        peer_check(db->close(), "close");
        delete db;
    }
    static struct kind kind(const char *name)
    {
        return {name, open, put, read_all, get, close};
    }
};

static int run(const char *workload)
{
    static const struct kind kinds[] = {Companies<HashDB>::kind("kyoto-hash"),
                                        Companies<TreeDB>::kind("kyoto-tree")};
    std::string name = workload;
    if (name == "order")
        order(false, false);
    else if (name == "order-random")
        order(true, false);
    else if (name == "order-etc")
        order(false, true);
    else if (name == "order-random-etc")
        order(true, true);
    else if (name == "wicked")
        wicked(1);
    else if (name == "wicked-x4")
        wicked(4);
    else
        return companies_run(kinds, sizeof kinds / sizeof *kinds, workload);
    return 1;
}

int main(int argc, char **argv)
{
    return peer_serve(argc, argv, run);
}
