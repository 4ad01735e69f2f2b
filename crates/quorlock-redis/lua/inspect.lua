-- Says what stands under a name; changes nothing.
--
-- KEYS[1]  the claim: a hash {owner: count} with a TTL
-- KEYS[2]  the token counter of the name: a string
--
-- Replies  {token}                     nothing: the name is free
--          {token, ttl, owner, count}  a plain lock; ttl in ms, -1 if it has none
--          {token, ttl, mode}          a lock of this other mode
--          {token, ttl}                a key that is no lock
--          where token is nil if none is stored
-- Errors   WRONGTYPE  the token counter is something else
--
-- It must be atomic: between two looks the claim could expire and become another's. A hash is read as a whole only
-- when it has one field, lest a look at something that is no lock should hold up the server.
local call, claim = redis.call, KEYS[1]

local token = call('GET', KEYS[2])
if token then
  token = tonumber(token)
  if not (token and token < 9007199254740992) then
    return redis.error_reply('WRONGTYPE the token counter holds no number below 2^53')
  end
end

local left = call('PTTL', claim)
if left == -2 then return {token} end

local fields = redis.pcall('HLEN', claim)
if type(fields) == 'table' then
  if string.find(fields.err, 'WRONGTYPE', 1, true) then return {token, left} end
  return fields
end
local mode = call('HGET', claim, 'mode')
if mode == 'read' or mode == 'write' then return {token, left, mode} end
if fields ~= 1 then return {token, left} end

-- A count is a whole number, at least 1, that fits into the reply.
local held = call('HGETALL', claim)
if not string.match(held[2], '^[1-9]%d*$') or #held[2] > 15 then return {token, left} end
return {token, left, held[1], tonumber(held[2])}
