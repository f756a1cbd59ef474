//! CLUSTER and related commands, answered as by a Redis server outside a cluster.

use super::{
    call::Call,
    command::{Command, rows},
    failure::Failure,
};

pub(super) const COMMANDS: &[Command] = rows! {
"asking" 1 Server(no_cluster), NO_KEY [FAST] Connection "3.0.0"
    ""
    "Returns an error: there is no cluster.";
"cluster" -2 Container(None), NO_KEY [] Server "3.0.0"
    ""
    "Commands about clusters.";
"cluster|addslots" -3 Server(no_cluster), NO_KEY [ADMIN DANGEROUS] Server "3.0.0"
    "slot [slot ...]"
    "Returns an error: there is no cluster.";
"cluster|addslotsrange" -4 Server(no_cluster), NO_KEY [ADMIN DANGEROUS] Server "7.0.0"
    "start-slot end-slot [start-slot end-slot ...]"
    "Returns an error: there is no cluster.";
"cluster|bumpepoch" 2 Server(no_cluster), NO_KEY [ADMIN DANGEROUS] Server "3.0.0"
    ""
    "Returns an error: there is no cluster.";
"cluster|count-failure-reports" 3 Server(no_cluster), NO_KEY [ADMIN DANGEROUS] Server "3.0.0"
    "node-id"
    "Returns an error: there is no cluster.";
"cluster|countkeysinslot" 3 Server(no_cluster), NO_KEY [] Server "3.0.0"
    "slot"
    "Returns an error: there is no cluster.";
"cluster|delslots" -3 Server(no_cluster), NO_KEY [ADMIN DANGEROUS] Server "3.0.0"
    "slot [slot ...]"
    "Returns an error: there is no cluster.";
"cluster|delslotsrange" -4 Server(no_cluster), NO_KEY [ADMIN DANGEROUS] Server "7.0.0"
    "start-slot end-slot [start-slot end-slot ...]"
    "Returns an error: there is no cluster.";
"cluster|failover" -2 Server(no_cluster), NO_KEY [ADMIN DANGEROUS] Server "3.0.0"
    "[FORCE | TAKEOVER]"
    "Returns an error: there is no cluster.";
"cluster|flushslots" 2 Server(no_cluster), NO_KEY [ADMIN DANGEROUS] Server "3.0.0"
    ""
    "Returns an error: there is no cluster.";
"cluster|forget" 3 Server(no_cluster), NO_KEY [ADMIN DANGEROUS] Server "3.0.0"
    "node-id"
    "Returns an error: there is no cluster.";
"cluster|getkeysinslot" 4 Server(no_cluster), NO_KEY [] Server "3.0.0"
    "slot count"
    "Returns an error: there is no cluster.";
"cluster|help" 2 Server(no_cluster), NO_KEY [] Server "5.0.0"
    ""
    "Returns an error: there is no cluster.";
"cluster|info" 2 Server(no_cluster), NO_KEY [] Server "3.0.0"
    ""
    "Returns an error: there is no cluster.";
"cluster|keyslot" 3 Server(no_cluster), NO_KEY [] Server "3.0.0"
    "key"
    "Returns an error: there is no cluster.";
"cluster|links" 2 Server(no_cluster), NO_KEY [] Server "7.0.0"
    ""
    "Returns an error: there is no cluster.";
"cluster|meet" -4 Server(no_cluster), NO_KEY [ADMIN DANGEROUS] Server "3.0.0"
    "ip port [cluster-bus-port]"
    "Returns an error: there is no cluster.";
"cluster|myid" 2 Server(no_cluster), NO_KEY [] Server "3.0.0"
    ""
    "Returns an error: there is no cluster.";
"cluster|myshardid" 2 Server(no_cluster), NO_KEY [] Server "7.2.0"
    ""
    "Returns an error: there is no cluster.";
"cluster|nodes" 2 Server(no_cluster), NO_KEY [] Server "3.0.0"
    ""
    "Returns an error: there is no cluster.";
"cluster|replicas" 3 Server(no_cluster), NO_KEY [ADMIN DANGEROUS] Server "5.0.0"
    "node-id"
    "Returns an error: there is no cluster.";
"cluster|replicate" 3 Server(no_cluster), NO_KEY [ADMIN DANGEROUS] Server "3.0.0"
    "node-id"
    "Returns an error: there is no cluster.";
"cluster|reset" -2 Server(no_cluster), NO_KEY [ADMIN DANGEROUS] Server "3.0.0"
    "[HARD | SOFT]"
    "Returns an error: there is no cluster.";
"cluster|saveconfig" 2 Server(no_cluster), NO_KEY [ADMIN DANGEROUS] Server "3.0.0"
    ""
    "Returns an error: there is no cluster.";
"cluster|set-config-epoch" 3 Server(no_cluster), NO_KEY [ADMIN DANGEROUS] Server "3.0.0"
    "config-epoch"
    "Returns an error: there is no cluster.";
"cluster|setslot" -4 Server(no_cluster), NO_KEY [ADMIN DANGEROUS] Server "3.0.0"
    "slot <IMPORTING node-id | MIGRATING node-id | NODE node-id | STABLE>"
    "Returns an error: there is no cluster.";
"cluster|shards" 2 Server(no_cluster), NO_KEY [] Server "7.0.0"
    ""
    "Returns an error: there is no cluster.";
"cluster|slaves" 3 Server(no_cluster), NO_KEY [ADMIN DANGEROUS] Server "3.0.0"
    "node-id"
    "Returns an error: there is no cluster.";
"cluster|slots" 2 Server(no_cluster), NO_KEY [] Server "3.0.0"
    ""
    "Returns an error: there is no cluster.";
"readonly" 1 Server(no_cluster), NO_KEY [FAST] Connection "3.0.0"
    ""
    "Returns an error: there is no cluster.";
"readwrite" 1 Server(no_cluster), NO_KEY [FAST] Connection "3.0.0"
    ""
    "Returns an error: there is no cluster.";
};

/// Uses the wording by which clients notice that they talk to a single server.
fn no_cluster(_: &mut Call<'_>) -> Result<(), Failure> {
    Err(Failure::other("This instance has cluster support disabled"))
}
