-- An acquire whose claim outlives its lease by a margin, and has a beat. It follows acquire.lua, which is the function
-- execute() here, and which is told the lease and the margin as one.
--
-- KEYS, last         the beat of the name: a string "<owner> <number of its request> <lease in ms>"
-- ARGV, last two     the beat that this request gives the claim; the beat, as it was shown, whose claim may be replaced,
--                    or ''
--
-- Replies  as acquire.lua, but where it refuses {what is left, the beat of the claim in the way, or nil if it has none}
-- Errors   as acquire.lua
--
-- It must be atomic: the claim that is replaced must be the one whose beat was shown, so that a holder that has renewed
-- it since keeps it. A claim that the beat does not name is never replaced. Every check comes before the first write.
local last = #KEYS
local key = KEYS[last]
KEYS[last] = nil
last = #ARGV
local mine, seen = ARGV[last - 1], ARGV[last]
ARGV[last - 1], ARGV[last] = nil, nil
local claim, owner, kept = KEYS[1], ARGV[1], ARGV[3]

local beat = redis.call('GET', key)
local whose, before, shown = nil, nil, false
if beat then whose, before = string.match(beat, '^(%S+) (%d+) %d+$') end
if whose then
  local held = redis.call('HMGET', claim, 'mode', whose)
  shown = not held[1] and held[2] and beat
end
if shown and shown == seen and whose ~= owner and redis.call('EXISTS', KEYS[3]) == 0 then
  local counter = redis.call('GET', KEYS[2])
  if not counter or (tonumber(counter) or 9007199254740992) < 9007199254740992 then redis.call('DEL', claim) end
end

local reply = execute()
if type(reply) == 'number' then return {reply, shown} end
if type(reply) ~= 'table' or reply.err then return reply end

if whose ~= owner or tonumber(before) < tonumber(string.match(mine, ' (%d+) ')) then beat = mine end
local left = reply[1] == 1 and -1 or redis.call('PTTL', claim)
redis.call('SET', key, beat, 'PX', left < tonumber(kept) and kept or left)
return reply
