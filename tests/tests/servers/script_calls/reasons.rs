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
        "Usually neither is there, and one look says so: no claim is in the way, and no owner waits for the fair lock of the name.",
    ),
    (
        "PTTL claim",
        "A refusal says for how long the claim stands yet, and a re-entry shortens no TTL.",
    ),
    (
        "HMGET claim",
        "Whose it is, whether it is a lock of another mode, and its claim version. To take it over, whether the claim version names its owner.",
    ),
    ("GET counter", "The new token is larger."),
    (
        "TIME",
        "A new token is the client's clock, believed as far as the slack allows by this server's.",
    ),
    (
        "DEL claim",
        "A claim that is taken over goes with all its fields.",
    ),
    (
        "SET counter",
        "A later hold gets a larger token, also when this claim has expired.",
    ),
    (
        "HSET claim",
        "The claim as Redisson keeps it, and its claim version.",
    ),
    (
        "PEXPIRE claim",
        "A claim without TTL would outlive its owner.",
    ),
];

const CHECK: &[(&str, &str)] = &[
    (
        "INFO",
        "No other command tells a script which process executes it. It is nearly half of what a check costs.",
    ),
    (
        "GET marker",
        "Whether this process was watched for long enough.",
    ),
    (
        "SET marker",
        "A watch begins here, or has ended: all clients read it.",
    ),
    (
        "PTTL marker",
        "The marker is kept for seven days, and anew when half of them are over.",
    ),
];

const RENEW: &[(&str, &str)] = &[
    (
        "HMGET claim",
        "Whether it is still the owner's; its count and its claim version.",
    ),
    (
        "GET counter",
        "The hold's token must not be lower, and the counter is written only if it is.",
    ),
    (
        "PTTL claim",
        "A renewal shortens no TTL, and a claim that has none keeps none.",
    ),
    ("PEXPIRE claim", "This is the renewal."),
    (
        "SET counter",
        "It is lower than the hold's token, or half of the time is over for which it is kept.",
    ),
    (
        "PTTL counter",
        "It has the hold's token: whether half of its time is over.",
    ),
];

const RELEASE: &[(&str, &str)] = &[
    (
        "HMGET claim",
        "Whether it is the owner's, and of this mode.",
    ),
    (
        "PUBLISH channel",
        "Waiters wake. It is no write: a user who may not is told while nothing has been done.",
    ),
    ("DEL claim", "The name is free."),
    ("HSET claim", "The count of the holds that go on."),
];

const BATCH: &[(&str, &str)] = &[
    (
        "GET marker",
        "Whether this process was watched for long enough: once for all requests.",
    ),
    ("INFO", "Which process it is: once for all."),
    ("TIME", "For all tokens."),
    (
        "EXISTS claim queue",
        "Whether all names are free. If not, each is looked at by itself.",
    ),
    ("MGET counter", "All counters."),
    (
        "EXISTS counter",
        "`MGET` says of a counter that is something else that nothing is there.",
    ),
    (
        "SET counter",
        "As alone: no command sets several keys and their TTLs.",
    ),
    ("HSET claim", "As alone."),
    ("PEXPIRE claim", "As alone: no command sets several TTLs."),
    ("HMGET claim", "As alone: no command reads several hashes."),
    (
        "PUBLISH channel",
        "As alone: its reply says how many heard it.",
    ),
    ("DEL claim", "All names that were released, at once."),
];

const FAIR_ACQUIRE: &[(&str, &str)] = &[
    (
        "PTTL claim",
        "Whether a claim is in the way, and for how long.",
    ),
    (
        "HMGET claim",
        "Whose it is, and whether it is of another mode.",
    ),
    (
        "GET counter",
        "The new token is larger; one that is no number is told before anything is written.",
    ),
    ("TIME", "Which waiters are dead by now, and for the token."),
    (
        "LINDEX queue",
        "Who is first; at the end, whether the queue has to be kept.",
    ),
    (
        "ZSCORE timeouts",
        "When Redisson drops the first; whether the owner has a place already.",
    ),
    (
        "ZSCORE alive",
        "Until when a waiter of ours is taken to be alive.",
    ),
    ("RPUSH queue", "A place at the end."),
    (
        "ZADD timeouts",
        "Redisson's clients drop a waiter that has no time here.",
    ),
    ("ZADD alive", "A waiter that asks no more loses its place."),
    (
        "PTTL queue",
        "Whether the queue would end before its last waiter.",
    ),
    ("PEXPIRE queue", "No key stays behind."),
    ("PEXPIRE timeouts", "No key stays behind."),
    ("PEXPIRE alive", "No key stays behind."),
    ("SET counter", "A later hold gets a larger token."),
    ("HSET claim", "The claim."),
    (
        "PEXPIRE claim",
        "A claim without TTL would outlive its owner.",
    ),
    ("LPOP queue", "The first is served."),
    ("ZREM timeouts", "It waits no more."),
    ("ZREM alive", "It waits no more."),
];

const FAIR_RELEASE: &[(&str, &str)] = &[
    (
        "HMGET claim",
        "Whether it is the owner's, and of this mode.",
    ),
    ("TIME", "Which waiters are dead by now."),
    ("LINDEX queue", "Who is first, before and after."),
    (
        "ZSCORE timeouts",
        "When Redisson drops the first; whether the owner waits itself.",
    ),
    (
        "ZSCORE alive",
        "Until when the first is taken to be alive; whether it is one of ours.",
    ),
    ("ZREM alive", "The owner waits no more."),
    ("LREM queue", "It gives up its place."),
    ("ZREM timeouts", "It gives up its place."),
    (
        "EXISTS claim",
        "Whether the next waiter may go on: the owner had a place and no claim.",
    ),
    ("PUBLISH waiter's channel", "The first waiter alone wakes."),
    ("DEL claim", "The name is free."),
];

const READ_ACQUIRE: &[(&str, &str)] = &[
    (
        "PTTL claim",
        "Whether a claim is in the way, and for how long.",
    ),
    (
        "HMGET claim",
        "Its mode, whether the owner reads already, and whether it is the writer that may read, too.",
    ),
    (
        "GET counter",
        "Readers are shown the token of the last writer.",
    ),
    (
        "PTTL lease",
        "Whether the owner's lease is there already: none is shortened.",
    ),
    (
        "SET lease",
        "Each hold of a reader has a lease of its own, as Redisson's have.",
    ),
    ("HSET claim", "The reader, and the mode."),
    (
        "PEXPIRE claim",
        "It stands for as long as the longest lease.",
    ),
];

const READ_RENEW: &[(&str, &str)] = &[
    ("HMGET claim", "Whether the owner still reads; its count."),
    (
        "EXISTS lease",
        "A reader whose lease has expired is none, though the claim names it.",
    ),
    ("PTTL lease", "A renewal shortens no lease."),
    ("PEXPIRE lease", "This is the renewal."),
    ("PTTL claim", "A renewal shortens no TTL."),
    (
        "PEXPIRE claim",
        "It stands for as long as the longest lease.",
    ),
];

const READ_RELEASE: &[(&str, &str)] = &[
    ("HMGET claim", "Whether the owner reads; its count."),
    ("HSCAN claim", "Who else does: at most some thousand looks."),
    ("EXISTS lease", "One whose lease has expired does not."),
    ("PUBLISH readers' channel", "Writers wake."),
    ("DEL lease", "The owner reads no more."),
    ("HDEL claim", "Others do."),
    ("DEL claim", "The name is free."),
];

const WRITE_ACQUIRE: &[(&str, &str)] = &[
    (
        "PTTL claim",
        "Whether a claim is in the way, and for how long.",
    ),
    (
        "HMGET claim",
        "Its mode, and whether the owner writes already.",
    ),
    ("HSCAN claim", "Who reads."),
    (
        "PTTL lease",
        "For how long the last of them may: a claim may stand longer than its leases.",
    ),
    ("GET counter", "The new token is larger."),
    ("TIME", "For the token."),
    ("SET counter", "A later hold gets a larger token."),
    ("HSET claim", "The writer, and the mode."),
    (
        "PEXPIRE claim",
        "A claim without TTL would outlive its owner.",
    ),
];

const WRITE_RENEW: &[(&str, &str)] = &[
    ("HMGET claim", "Whether it is still the owner's; its count."),
    ("GET counter", "The hold's token must not be lower."),
    ("PTTL claim", "A renewal shortens no TTL."),
    ("PEXPIRE claim", "This is the renewal."),
    ("SET counter", "It is lower than the hold's token."),
];

const WRITE_RELEASE: &[(&str, &str)] = &[
    ("HMGET claim", "Whether the owner writes."),
    (
        "HSCAN claim",
        "Whether it reads, too, or another does: then the claim stays.",
    ),
    (
        "PUBLISH readers' channel",
        "All wake: readers may enter together.",
    ),
    ("DEL claim", "The name is free."),
];

const INSPECT: &[(&str, &str)] = &[
    ("GET counter", "The last token."),
    ("LLEN queue", "How many wait for the fair lock."),
    ("PTTL claim", "Whether there is a claim, and for how long."),
    (
        "HLEN claim",
        "Whether it is a hash of a lock's size: a larger one is not read.",
    ),
    (
        "HMGET claim",
        "Its mode, and whether it has a claim version.",
    ),
    ("HGETALL claim", "The owners and their counts."),
    ("EXISTS lease", "A reader whose lease has expired is none."),
];

const FORCE_RELEASE: &[(&str, &str)] = &[
    ("HLEN claim", "Whether there is a claim of a lock's size."),
    (
        "HMGET claim",
        "Its mode, and whether it has a claim version.",
    ),
    (
        "HGETALL claim",
        "Whether each field is one of a lock: nothing else is deleted. The leases of readers.",
    ),
    ("TIME", "Which waiters of the fair lock are dead by now."),
    ("LINDEX queue", "Who of them is first."),
    ("PUBLISH channel", "Waiters wake."),
    ("PUBLISH readers' channel", "Waiters wake."),
    ("DEL lease", "The readers read no more."),
    ("DEL claim", "The name is free."),
];
