//! The reason for each command of the scripts.

/// Returns the reason for a command of this script. A check surrounds an acquire, whose commands have their own reasons.
pub(super) fn reason(script: &str, call: &str) -> Option<&'static str> {
    let of = |script: &str| {
        let own = all().find(|reason| reason.script == script && reason.call == call);
        own.map(|reason| reason.why)
    };
    of(script).or_else(|| of("acquire").filter(|_| script == "check"))
}

/// The reason why a script has a command.
pub(super) struct Reason {
    pub(super) script: &'static str,
    pub(super) call: &'static str,
    why: &'static str,
}

pub(super) fn all() -> impl Iterator<Item = Reason> {
    ALL.iter().flat_map(|(script, calls)| {
        calls
            .iter()
            .map(move |(call, why)| Reason { script, call, why })
    })
}

/// The commands of each script, with their reasons.
type Reasons = &'static [(&'static str, &'static [(&'static str, &'static str)])];

const ALL: Reasons = &[
    ("acquire", ACQUIRE),
    ("check", CHECK),
    ("renew", RENEW),
    ("release", RELEASE),
    ("batch", BATCH),
    ("fair_acquire", FAIR_ACQUIRE),
    ("fair_release", FAIR_RELEASE),
    ("read_acquire", READ_ACQUIRE),
    ("read_renew", READ_RENEW),
    ("read_release", READ_RELEASE),
    ("write_acquire", WRITE_ACQUIRE),
    ("write_renew", WRITE_RENEW),
    ("write_release", WRITE_RELEASE),
    ("inspect", INSPECT),
    ("force_release", FORCE_RELEASE),
];

const ACQUIRE: &[(&str, &str)] = &[
    (
        "EXISTS claim queue",
        "Usually neither key exists. One command shows that no claim is in the way, and that no owner waits for the fair lock of the name.",
    ),
    (
        "PTTL claim",
        "A refusal states the remaining TTL of the claim, and a re-entry does not shorten it.",
    ),
    (
        "HMGET claim",
        "Shows whether the claim belongs to the owner or to a lock of another mode, and its claim version.",
    ),
    (
        "HLEN claim",
        "A claim with a claim version has one field. The hash of another program may have millions, and reading them would block the server.",
    ),
    (
        "HGETALL claim",
        "Shows the other owner and its claim version.",
    ),
    (
        "GET counter",
        "A new token must be larger than the last one, and the token of a re-entry must not be smaller.",
    ),
    (
        "TIME",
        "The floor of a new token is the client's clock, limited to the slack around this server's clock.",
    ),
    (
        "DEL claim",
        "A take-over removes the old claim with all its fields.",
    ),
    (
        "SET counter",
        "A later hold gets a larger token, even after this claim has expired.",
    ),
    (
        "HSET claim",
        "Stores the claim as Redisson does, and its claim version.",
    ),
    (
        "PEXPIRE claim",
        "A claim without TTL would outlive its owner.",
    ),
];

const CHECK: &[(&str, &str)] = &[
    (
        "INFO",
        "No other command tells a script which process executes it. It is nearly half of the cost of a check.",
    ),
    (
        "GET marker",
        "Shows whether this process was watched for long enough.",
    ),
    (
        "SET marker",
        "Records for all clients that a watch has begun or ended.",
    ),
    (
        "PTTL marker",
        "The marker is kept for seven days. Its TTL starts again when less than half of it is left.",
    ),
];

const RENEW: &[(&str, &str)] = &[
    (
        "HMGET claim",
        "Shows whether the claim still belongs to the owner, its count and its claim version.",
    ),
    (
        "GET counter",
        "The counter must not be smaller than the hold's token, and is written only if it is.",
    ),
    (
        "MGET counter",
        "Reads all counters with one command. Most of them have the hold's token.",
    ),
    (
        "TIME",
        "Shows whether the TTL of the counter is looked at now: during one lease in each eighth of its retention.",
    ),
    (
        "PEXPIRE claim",
        "Extends the claim: this is the renewal. It does not shorten a TTL, and a claim without TTL stays without one (`GT`; before Redis 7, after a `PTTL`).",
    ),
    (
        "SET counter",
        "The counter is smaller than the hold's token, or half of its retention has passed.",
    ),
    (
        "PTTL counter",
        "The counter has the hold's token. Its TTL shows whether half of its retention has passed.",
    ),
];

const RELEASE: &[(&str, &str)] = &[
    (
        "HMGET claim",
        "Shows whether the claim belongs to the owner, and whether it is of this mode.",
    ),
    ("DEL claim", "Frees the name."),
    (
        "PUBLISH channel",
        "Wakes waiters. It comes last, and its error undoes nothing: the name is free even if the user may not publish.",
    ),
    ("HSET claim", "Stores the number of holds that remain."),
];

const BATCH: &[(&str, &str)] = &[
    (
        "GET marker",
        "Shows whether this process was watched for long enough, once for all requests.",
    ),
    ("INFO", "Shows which process it is, once for all requests."),
    ("TIME", "Limits the floors of all new tokens."),
    (
        "EXISTS claim queue",
        "Shows whether all names are free. If not, each name is checked separately.",
    ),
    ("MGET counter", "Reads all counters."),
    (
        "EXISTS counter",
        "`MGET` returns nothing for a missing key, and also for a key of another type. This command tells them apart.",
    ),
    (
        "SET counter",
        "As in a single request: no command sets several keys with their TTLs.",
    ),
    ("HSET claim", "As in a single request."),
    (
        "PEXPIRE claim",
        "As in a single request: no command sets several TTLs.",
    ),
    (
        "HMGET claim",
        "As in a single request: no command reads several hashes.",
    ),
    ("DEL claim", "Deletes the claims of all released names."),
    (
        "PUBLISH channel",
        "As in a single request: its reply is the number of clients that receive the message.",
    ),
];

const FAIR_ACQUIRE: &[(&str, &str)] = &[
    (
        "PTTL claim",
        "Shows whether a claim is in the way, and for how long.",
    ),
    (
        "HMGET claim",
        "Shows whether the claim belongs to the owner or to a lock of another mode.",
    ),
    (
        "GET counter",
        "The new token must be larger. A counter that is not a number is an error before the first write.",
    ),
    (
        "TIME",
        "Shows which waiters are dead by now, and limits the floor of a new token.",
    ),
    (
        "EXISTS timeouts alive",
        "A server at its memory limit may have evicted one of the keys of the queue, which is then mended.",
    ),
    (
        "LINDEX queue",
        "Reads the first waiter; again at the end, to decide how long the queue is kept.",
    ),
    (
        "ZSCORE timeouts",
        "Shows when Redisson drops the first waiter, and whether the owner already has a place.",
    ),
    (
        "ZSCORE alive",
        "Shows until when a waiter of Quorlock is considered alive.",
    ),
    ("RPUSH queue", "Adds the owner at the end of the queue."),
    (
        "ZADD timeouts",
        "Redisson's clients drop a waiter without an entry here.",
    ),
    (
        "ZADD alive",
        "A waiter that no longer sends requests loses its place at this time.",
    ),
    (
        "PTTL queue",
        "Shows whether the queue would expire before its last waiter is dead.",
    ),
    (
        "PEXPIRE queue",
        "The queue expires when its last waiter is dead.",
    ),
    ("PEXPIRE timeouts", "Expires with the queue."),
    ("PEXPIRE alive", "Expires with the queue."),
    ("SET counter", "A later hold gets a larger token."),
    ("HSET claim", "Stores the claim."),
    (
        "PEXPIRE claim",
        "A claim without TTL would outlive its owner.",
    ),
    (
        "LPOP queue",
        "The owner is the first waiter, and leaves the queue.",
    ),
    ("ZREM timeouts", "The owner no longer waits."),
    ("ZREM alive", "The owner no longer waits."),
];

const FAIR_RELEASE: &[(&str, &str)] = &[
    (
        "HMGET claim",
        "Shows whether the claim belongs to the owner, and whether it is of this mode.",
    ),
    ("TIME", "Shows which waiters are dead by now."),
    (
        "EXISTS timeouts alive",
        "A server at its memory limit may have evicted one of the keys of the queue, which is then mended.",
    ),
    (
        "LINDEX queue",
        "Reads the first waiter, and the next one if the owner was the first.",
    ),
    (
        "ZSCORE timeouts",
        "Shows when Redisson drops the first waiter, and whether the owner itself waits.",
    ),
    (
        "ZSCORE alive",
        "Shows until when the first waiter is considered alive, and whether it is a waiter of Quorlock.",
    ),
    ("ZREM alive", "The owner no longer waits."),
    ("LREM queue", "The owner leaves the queue."),
    ("ZREM timeouts", "The owner no longer waits."),
    (
        "EXISTS claim",
        "Shows whether the name is free for the next waiter: the owner had a place, but no claim.",
    ),
    ("DEL claim", "Frees the name."),
    ("PUBLISH waiter's channel", "Wakes only the first waiter."),
];

const READ_ACQUIRE: &[(&str, &str)] = &[
    (
        "PTTL claim",
        "Shows whether a claim is in the way, and for how long.",
    ),
    (
        "HMGET claim",
        "Shows the mode, whether the owner already reads, and whether it is the writer, which may also read.",
    ),
    ("GET counter", "A reader gets the token of the last writer."),
    (
        "PTTL lease",
        "Shows whether the owner already has this lease, which is never shortened.",
    ),
    (
        "SET lease",
        "Each hold of a reader has its own lease, as in Redisson.",
    ),
    ("HSET claim", "Stores the reader and the mode."),
    (
        "PEXPIRE claim",
        "The TTL of the hash is the longest lease of its readers.",
    ),
];

const READ_RENEW: &[(&str, &str)] = &[
    (
        "HMGET claim",
        "Shows whether the owner still reads, and its count.",
    ),
    (
        "EXISTS lease",
        "A reader whose lease has expired no longer reads, even if the claim still has its field.",
    ),
    ("PTTL lease", "A renewal does not shorten a lease."),
    ("PEXPIRE lease", "Extends the lease: this is the renewal."),
    ("PTTL claim", "A renewal does not shorten a TTL."),
    (
        "PEXPIRE claim",
        "The TTL of the hash is the longest lease of its readers.",
    ),
];

const READ_RELEASE: &[(&str, &str)] = &[
    (
        "HMGET claim",
        "Shows whether the owner reads, and its count.",
    ),
    (
        "HSCAN claim",
        "Finds the other readers. The script looks up at most 10,000 of their leases.",
    ),
    (
        "EXISTS lease",
        "A reader whose lease has expired no longer reads.",
    ),
    ("DEL lease", "The owner no longer reads."),
    (
        "HDEL claim",
        "Removes the owner's field, because others still read.",
    ),
    ("DEL claim", "Frees the name."),
    ("PUBLISH readers' channel", "Wakes waiting writers."),
];

const WRITE_ACQUIRE: &[(&str, &str)] = &[
    (
        "PTTL claim",
        "Shows whether a claim is in the way, and for how long.",
    ),
    (
        "HMGET claim",
        "Shows the mode, and whether the owner already writes.",
    ),
    ("HSCAN claim", "Finds the readers."),
    (
        "PTTL lease",
        "Finds the longest remaining lease of the readers. The TTL of the hash may be longer.",
    ),
    ("GET counter", "The new token must be larger."),
    ("TIME", "Limits the floor of the new token."),
    ("SET counter", "A later hold gets a larger token."),
    ("HSET claim", "Stores the writer and the mode."),
    (
        "PEXPIRE claim",
        "A claim without TTL would outlive its owner.",
    ),
];

const WRITE_RENEW: &[(&str, &str)] = &[
    (
        "HMGET claim",
        "Shows whether the claim still belongs to the owner, and its count.",
    ),
    (
        "GET counter",
        "The counter must not be smaller than the hold's token.",
    ),
    (
        "TIME",
        "Shows whether the TTL of the counter is looked at now: during one lease in each eighth of its retention.",
    ),
    ("PTTL claim", "A renewal does not shorten a TTL."),
    ("PEXPIRE claim", "Extends the claim: this is the renewal."),
    (
        "SET counter",
        "The counter is smaller than the hold's token.",
    ),
];

const WRITE_RELEASE: &[(&str, &str)] = &[
    ("HMGET claim", "Shows whether the owner writes."),
    (
        "HSCAN claim",
        "Finds readers, including the owner itself. If there are any, the claim stays.",
    ),
    ("DEL claim", "Frees the name."),
    (
        "PUBLISH readers' channel",
        "Wakes all waiters: readers may enter together.",
    ),
];

const INSPECT: &[(&str, &str)] = &[
    ("GET counter", "Reads the last token."),
    ("LLEN queue", "Counts the waiters for the fair lock."),
    (
        "PTTL claim",
        "Shows whether there is a claim, and its remaining TTL.",
    ),
    (
        "HLEN claim",
        "Shows whether the hash has no more fields than a lock. A larger one is not read.",
    ),
    (
        "HMGET claim",
        "Shows the mode, and whether there is a claim version.",
    ),
    ("HGETALL claim", "Reads the owners and their counts."),
    (
        "EXISTS lease",
        "A reader whose lease has expired is not counted.",
    ),
];

const FORCE_RELEASE: &[(&str, &str)] = &[
    (
        "HLEN claim",
        "Shows whether there is a hash with no more fields than a lock.",
    ),
    (
        "HMGET claim",
        "Shows the mode, and whether there is a claim version.",
    ),
    (
        "HGETALL claim",
        "Shows whether every field is that of a lock: nothing else is deleted. It also shows which leases readers have.",
    ),
    (
        "TIME",
        "Shows which waiters for the fair lock are dead by now.",
    ),
    (
        "EXISTS timeouts alive",
        "A server at its memory limit may have evicted one of the keys of the queue, which is then mended.",
    ),
    ("LINDEX queue", "Reads the first waiter."),
    ("DEL lease", "Ends the holds of readers."),
    ("DEL claim", "Frees the name."),
    ("PUBLISH channel", "Wakes waiters."),
    ("PUBLISH readers' channel", "Wakes waiters."),
];
