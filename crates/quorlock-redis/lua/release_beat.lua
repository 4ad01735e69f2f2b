-- A release of a claim that has a beat. It follows release.lua, which is the function execute() here.
--
-- KEYS, last  the beat of the name: see acquire_beat.lua
--
-- Replies  as release.lua
--
-- It must be atomic: a beat goes with its claim.
local key = table.remove(KEYS)
local beat = redis.call('GET', key)
local reply = execute()
if reply == 1 and beat and string.match(beat, '^%S+') == ARGV[1] then redis.call('DEL', key) end
return reply
