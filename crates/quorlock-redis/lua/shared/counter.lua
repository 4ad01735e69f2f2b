-- The token counter of a name: which values are valid, which token comes next, and how long the counter is kept. It
-- needs clock.lua before it. Each call pays for every function that it defines, so there are few.

-- The reply for a counter key with another value. Beyond 2^53 a number of Lua is no longer exact.
local NO_COUNTER = 'WRONGTYPE the token counter holds no number below 2^53'

-- Returns the number in a counter, or nothing.
local function counted(text)
  local number = tonumber(text)
  return number and number < 9007199254740992 and number
end

-- Returns the token of a claim, which never goes back: without a slack, the one that a hold carries along; with one,
-- a new token. The floor of a new token is the client's clock, limited to `slack` ms from this server's clock.
-- `stored` is the value of the counter, `now` the server's time if it is known already.
local function next_token(stored, asked, slack, yours, now)
  if slack == '' then
    if stored and stored > asked then return stored end
    return asked
  end
  -- A request that is executed twice gets the same value both times.
  if yours and stored then return stored end
  now, slack = now or server_now(), slack + 0
  local token = math.max(now - slack, math.min(asked, now + slack))
  if stored and stored >= token then token = stored + 1 end
  return token
end

-- Writes the token's text and keeps it for `kept` ms, forever if that is '0'. An error is raised, or returned if
-- `call` is redis.pcall.
local function store_token(call, counter, text, kept)
  if kept == '0' then return call('SET', counter, text) end
  return call('SET', counter, text, 'PX', kept)
end
