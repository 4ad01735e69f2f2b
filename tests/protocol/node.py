"""The requests of docs/src/protocol.md to one node, as scripts. The comments name the rules.

Implemented: keys, nodes, plain locks, tokens, renewals, releases, margins, markers. Requests that go together are sent one
after another. Not implemented: fair locks, read-write locks, and what operators ask.
"""

from resp import ServerError

MOST = 2**53 - 1
MARKER = "quorlock_marker"

# Precedes both scripts that choose tokens. T5: an invalid counter is an error before anything is written.
COUNTER = """
local function read_counter(key)
  local text = redis.call('GET', key)
  if not text then return nil end
  local value = tonumber(text)
  if not value or 9007199254740992 <= value then return nil, 'WRONGTYPE the counter is no number below 2^53' end
  return value
end
local function text_of(number) return string.format('%.0f', number) end
local function write_counter(key, value, retention)
  if retention == '0' then redis.call('SET', key, text_of(value))
  else redis.call('SET', key, text_of(value), 'PX', retention) end
end
local function beat_number(beat) return beat and tonumber(string.match(beat, '^%S+ (%d+) %d+$')) or -1 end
-- A2: a TTL is never shortened, and a claim without one keeps none.
local function extend(key, kept)
  local left = redis.call('PTTL', key)
  if left >= 0 and left < tonumber(kept) then redis.call('PEXPIRE', key, kept) end
end
-- B4: only a claim version with a larger number replaces one.
local function write_claim(key, owner, count, beat, before)
  redis.call('HSET', key, owner, count)
  if beat ~= '' and beat_number(before) < beat_number(beat) then redis.call('HSET', key, 'beat', beat) end
end
"""

# KEYS: claim, counter, queue. ARGV: owner, count, lease with margin, retention, floor, slack, carry, beat, replaces.
ACQUIRE = """
local claim, counter, queue = KEYS[1], KEYS[2], KEYS[3]
local owner, count, kept, retention, floor, slack, carry, beat, replaces = unpack(ARGV)
local left = redis.call('PTTL', claim)
local held = redis.call('HMGET', claim, 'mode', owner, 'beat')               -- A5: raises WRONGTYPE
if held[1] then return {'other mode', held[1]} end                           -- A4
local mine, shown = held[2], held[3]
local replaced = false
if not mine then
  if redis.call('EXISTS', queue) == 1 then return {'other mode', 'fair'} end -- A6
  if left ~= -2 then
    if replaces ~= '' and shown == replaces then                             -- B3
      local holder = string.match(shown, '^%S+')
      replaced = redis.call('HEXISTS', claim, holder) == 1
    end
    if not replaced then                                                     -- A3, B2
      return {'refused', left, beat ~= '' and shown or false}
    end
  end
end
local stored, wrong = read_counter(counter)
if wrong then return redis.error_reply(wrong) end
local token
if carry ~= '' then token = math.max(stored or 0, tonumber(carry))           -- T3
elseif mine and stored then token = stored                                   -- T2
else                                                                         -- T1
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  floor, slack = tonumber(floor), tonumber(slack)
  token = math.max(now - slack, math.min(now + slack, floor))
  if stored and token <= stored then token = stored + 1 end
end
if replaced then redis.call('DEL', claim) end
write_counter(counter, token, retention)                                     -- T4
if mine then
  extend(claim, kept)
  write_claim(claim, owner, count, beat, shown)
  return {'already yours', text_of(token)}                                   -- A2
end
write_claim(claim, owner, count, beat, false)                                -- A1, B1
local expiry = redis.pcall('PEXPIRE', claim, kept)
if type(expiry) == 'table' then redis.call('DEL', claim) return expiry end
return {'anew', text_of(token)}
"""

# KEYS: claim, counter. ARGV: owner, count, lease with margin, retention, token, beat.
RENEW = """
local claim, counter = KEYS[1], KEYS[2]
local owner, count, kept, retention, token, beat = unpack(ARGV)
if redis.call('TYPE', claim).ok ~= 'hash' then return false end              -- E2
local held = redis.call('HMGET', claim, 'mode', owner, 'beat')
if held[1] or not held[2] then return false end
local kind = redis.call('TYPE', counter).ok
if kind ~= 'none' and kind ~= 'string' then return false end
local stored, wrong = read_counter(counter)
if wrong then return false end
local value = math.max(stored or 0, tonumber(token))                         -- E1
extend(claim, kept)
write_claim(claim, owner, count, beat, held[3])
local left, keep = redis.call('PTTL', counter), tonumber(retention)          -- T7
local lasts = keep == 0 and left == -1 or keep > 0 and keep <= 2 * left and 2 * tonumber(kept) <= keep
if value ~= stored or not lasts then write_counter(counter, value, retention) end
return text_of(value)
"""

# KEYS: claim. ARGV: owner, count, channel.
RELEASE = """
local held = redis.call('HMGET', KEYS[1], 'mode', ARGV[1])                   -- L4: raises WRONGTYPE
if held[1] or not held[2] then return 'not yours' end                        -- L3
if ARGV[2] ~= '0' then redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) return 'kept' end
redis.call('PUBLISH', ARGV[3], '0')                                          -- L1
redis.call('DEL', KEYS[1])
return 'freed'
"""

# The check, around another script or none. KEYS, last: the marker. ARGV, last 7: act, nonce, longest, trusted nonce,
# whether everything is kept, known nonce, lease. Returns {the other script's reply, the state of the marker, nonce,
# process}.
CHECK = """
local function execute() %s end
local marker, last = KEYS[#KEYS], #ARGV
local act, nonce, longest, trusted, keeps, known, lease = unpack(ARGV, last - 6, last)
local week = 604800000
if tonumber(longest) < tonumber(lease) then return redis.error_reply('LONGESTLEASE') end         -- M2
local info = redis.call('INFO', 'replication')
local process = string.sub(string.match(info, 'master_replid:(%%x+)'), 1, 13)                    -- M1
local text = redis.call('GET', marker)
local whose, has, figure, ripeness
if text then whose, has, figure, ripeness = string.match(text, '^(%%x+):(%%d+):(%%d+):(%%a+)$') end
local is_own = whose == process
if is_own and figure ~= longest then return redis.error_reply('LONGESTLEASE') end
local reply = execute()
if type(reply) == 'table' and reply.err then return reply end
local function write(with, ripe)
  redis.call('SET', marker, process .. ':' .. with .. ':' .. longest .. ':' .. ripe, 'PX', week)
  text, has, ripeness, is_own = true, with, ripe, true
end
local marks = act == 'mark' or act == 'mark fresh'
if is_own and ripeness == 'ripe' and has == trusted then                                         -- M8
elseif is_own and act == 'ripen' and has == nonce then write(has, 'ripe')                        -- M4
elseif is_own then                                                                               -- M6
  if redis.call('PTTL', marker) < week / 2 then redis.call('PEXPIRE', marker, week) end
elseif marks and keeps == '1' and ripeness == 'ripe' and figure == longest                       -- M7
  and (known == '' or known == has) and string.find(info, 'role:master', 1, true)
  and string.find(info, 'connected_slaves:0\\r', 1, true)
  and string.find(info, 'master_replid2:' .. string.rep('0', 40), 1, true) then write(has, 'ripe')
elseif marks then write(nonce, act == 'mark fresh' and not text and 'ripe' or 'unripe') end      -- M3
if not text then return {reply, 'missing', '0', process} end                                     -- M5
if not is_own then return {reply, "another's", '0', process} end
return {reply, ripeness, has, process}
"""

CHECKED_ACQUIRE = CHECK % (COUNTER + ACQUIRE)
PROBE = CHECK % "return false"


class NotImplementedHere(Exception):
    """The page has it, and this client does not implement it."""


def key(prefix, name):
    """K2."""
    return f"{prefix}:{name}" if "{" in name else f"{prefix}:{{{name}}}"


def channel(name):
    """K4."""
    return key("redisson_lock__channel", name)


class Node:
    """One server. Each request is one script, so one atomic step (N1)."""

    def __init__(self, connection):
        self.connection = connection

    def _run(self, script, keys, args):
        try:
            return self.connection.ask("EVAL", script, len(keys), *keys, *args)
        except ServerError as error:
            for word, said in (("WRONGTYPE", "wrong type"), ("LONGESTLEASE", "longest lease")):
                if word in str(error):
                    return {"error": said}
            raise

    def acquire(self, owner, name="orders/42", mode="plain", count=1, lease=10000, floor=1, slack=MOST, carry=None,
                retention=86400000, margin=None, number=None, replaces=None, check=None, place=None, under=None):
        if mode != "plain" or place is not None or under is not None:
            raise NotImplementedHere(mode)
        keys = [name, key("redisson_lock_token", name), key("redisson_lock_queue", name)]
        beat = "" if margin is None else f"{owner} {number} {lease}"
        args = [owner, count, lease + (margin or 0), retention, floor, slack, "" if carry is None else carry, beat, replaces or ""]
        if check is None:
            return self._granted(self._run(COUNTER + ACQUIRE, keys, args))
        said = self._run(CHECKED_ACQUIRE, keys + [MARKER], args + self._check(lease=lease, **check))
        return said if isinstance(said, dict) else {**self._granted(said[0]), "marker": self._marker(said)}

    @staticmethod
    def _granted(said):
        if isinstance(said, dict):
            return said
        if said[0] == "refused":
            return {"refused": said[1], "beat": said[2]} if said[2] else {"refused": said[1]}
        return {said[0]: said[1]} if said[0] == "other mode" else {"granted": said[0], "token": int(said[1])}

    def renew(self, owner, token, name="orders/42", mode="plain", count=1, lease=10000, retention=86400000, margin=None, number=None):
        if mode != "plain":
            raise NotImplementedHere(mode)
        beat = "" if margin is None else f"{owner} {number} {lease}"
        args = [owner, count, lease + (margin or 0), retention, token, beat]
        said = self._run(COUNTER + RENEW, [name, key("redisson_lock_token", name)], args)
        return {"extended": int(said)} if said else "not yours"

    def release(self, owner, name="orders/42", mode="plain", count=0):
        if mode != "plain":
            raise NotImplementedHere(mode)
        return self._run(RELEASE, [name], [owner, count, channel(name)])

    def probe(self, **check):
        said = self._run(PROBE, [MARKER], self._check(lease=0, **check))
        return said if isinstance(said, dict) else {"marker": self._marker(said)}

    @staticmethod
    def _check(lease, act="look", nonce=0, longest=60000, trusted=None, keep=False, known=None):
        text = lambda value: "" if value is None else value
        return [act, nonce, longest, text(trusted), int(keep), text(known), lease]

    @staticmethod
    def _marker(said):
        return {said[1]: int(said[2])} if said[1] in ("ripe", "unripe") else said[1]
