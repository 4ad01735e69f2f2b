import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.redisson.RedissonMultiLock;
import org.redisson.RedissonRedLock;
import org.redisson.api.RBucket;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;

/** The actions of a thread on one lock. */
final class Actions {
    private static final long LONG = 30_000;
    private static final long BETWEEN_READS_MILLIS = 50;
    /** The shortest pause of a thread after an increment, so that other threads get the lock. */
    private static final long BETWEEN_WRITES_NANOS = 10_000_000;
    /** The pause after an increment as a multiple of the time for which the thread held the lock. */
    private static final long BETWEEN_WRITES_PER_HOLD = 4;

    private final RLock lock;
    /** The parts of a lock that is made of several, otherwise the lock itself. */
    private final List<RLock> parts;
    private final List<String> names;
    private final List<RedissonClient> clients;
    private final RedissonClient client;

    private Actions(RLock lock, List<RLock> parts, List<String> names, List<RedissonClient> clients) {
        this.lock = lock;
        this.parts = parts;
        this.names = names;
        this.clients = clients;
        client = clients.get(0);
    }

    static Actions of(Clients clients, String mode, String nameList, String addressList) {
        var names = List.of(nameList.split(","));
        var all = Arrays.stream(addressList.split(",")).map(clients::of).collect(Collectors.toList());
        var client = all.get(0);
        var name = names.get(0);
        List<RLock> parts = switch (mode) {
            case "reentrant" -> List.of(client.getLock(name));
            case "fair" -> List.of(client.getFairLock(name));
            case "read" -> List.of(client.getReadWriteLock(name).readLock());
            case "write" -> List.of(client.getReadWriteLock(name).writeLock());
            case "fenced" -> List.of(client.getFencedLock(name));
            case "multi" -> names.stream().map(client::getLock).collect(Collectors.toList());
            case "multi-fenced" -> names.stream().map(client::getFencedLock).collect(Collectors.toList());
            case "red" -> all.stream().map(one -> one.getLock(name)).collect(Collectors.toList());
            default -> throw new IllegalArgumentException("no such mode: " + mode);
        };
        RLock lock = switch (mode) {
            case "multi", "multi-fenced" -> new RedissonMultiLock(parts.toArray(new RLock[0]));
            case "red" -> new RedissonRedLock(parts.toArray(new RLock[0]));
            default -> parts.get(0);
        };
        return new Actions(lock, parts, names, all);
    }

    /** Performs the action of a line. With a lease of 0 the watchdog renews the lock. */
    Object perform(String[] words) throws InterruptedException {
        return switch (words[2]) {
            case "connect" -> "";
            case "acquire" -> acquire(Long.parseLong(words[6]));
            case "acquire-for-seconds" -> acquireForSeconds(Long.parseLong(words[6]));
            case "try" -> attempt(Long.parseLong(words[6]));
            case "release" -> release();
            case "force" -> force();
            case "counts" -> counts();
            case "increment" -> increment(words[6], Long.parseLong(words[7]));
            case "compare" -> compare(words[6], Long.parseLong(words[7]));
            default -> throw new IllegalArgumentException("no such verb: " + words[2]);
        };
    }

    /** Waits until the lock is acquired. Returns the token of a fenced lock. */
    private Object acquire(long lease) {
        if (lease == 0 && lock instanceof RFencedLock fenced) {
            return fenced.lockAndGetToken();
        }
        if (lease == 0) {
            lock.lock();
        } else {
            // lockAndGetToken ignores the lease.
            lock.lock(lease, TimeUnit.MILLISECONDS);
        }
        return lock instanceof RFencedLock fenced ? fenced.getToken() : "";
    }

    /** Like {@link #acquire}, with a lease in seconds, which some versions convert to another length. */
    private Object acquireForSeconds(long lease) {
        lock.lock(lease, TimeUnit.SECONDS);
        return "";
    }

    private boolean attempt(long lease) throws InterruptedException {
        return lease == 0 ? lock.tryLock() : lock.tryLock(0, lease, TimeUnit.MILLISECONDS);
    }

    private Object release() {
        lock.unlock();
        return "";
    }

    /** Frees each part by force. Redisson cannot do this for several locks that were acquired together. */
    private long force() {
        return parts.stream().filter(RLock::forceUnlock).count();
    }

    /** Returns the hold counts of the names, of all owners. */
    private String counts() {
        return clients.stream()
                .flatMap(server -> names.stream().map(name -> server.<String, String>getMap(name, StringCodec.INSTANCE)))
                .flatMap(fields -> fields.readAllMap().entrySet().stream())
                .filter(field -> !field.getKey().equals("mode"))
                .map(Map.Entry::getValue)
                .collect(Collectors.joining(","));
    }

    /** Increments the number repeatedly, each time under the lock, until it reaches the limit. */
    private long increment(String key, long limit) throws InterruptedException {
        RBucket<String> number = client.getBucket(key, StringCodec.INSTANCE);
        RBucket<String> copy = client.getBucket(key + ":copy", StringCodec.INSTANCE);
        for (long own = 0; ; own++) {
            acquire(LONG);
            var since = System.nanoTime();
            try {
                var value = Long.parseLong(number.get());
                if (limit <= value) {
                    return own;
                }
                number.set(Long.toString(value + 1));
                copy.set(Long.toString(value + 1));
            } finally {
                lock.unlock();
            }
            var held = System.nanoTime() - since;
            TimeUnit.NANOSECONDS.sleep(Math.max(BETWEEN_WRITES_NANOS, BETWEEN_WRITES_PER_HOLD * held));
        }
    }

    /** Compares the number with its copy repeatedly, each time under the lock, until it reaches the limit. */
    private long compare(String key, long limit) throws InterruptedException {
        RBucket<String> number = client.getBucket(key, StringCodec.INSTANCE);
        RBucket<String> copy = client.getBucket(key + ":copy", StringCodec.INSTANCE);
        for (long own = 1; ; own++) {
            acquire(LONG);
            try {
                var value = number.get();
                var again = copy.get();
                if (!value.equals(again)) {
                    throw new IllegalStateException("somebody writes: " + value + " is not " + again);
                }
                if (limit <= Long.parseLong(value)) {
                    return own;
                }
            } finally {
                lock.unlock();
            }
            Thread.sleep(BETWEEN_READS_MILLIS);
        }
    }
}
