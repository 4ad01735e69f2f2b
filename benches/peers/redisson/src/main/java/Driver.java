import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import org.redisson.Redisson;
import org.redisson.RedissonRedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * Works with Redisson as the harness requests: see locks/driver/program.rs. The lock is an {@code RLock} on one server and a {@code RedissonRedLock} on several. Only the
 * length of the lease differs from the defaults.
 */
public final class Driver {
    private final JsonNode job;
    private final List<RedissonClient> clients = new ArrayList<>();
    private final BufferedReader input = new BufferedReader(new InputStreamReader(System.in));

    public static void main(String[] arguments) {
        try {
            work(arguments);
            System.exit(0);
        } catch (Throwable failure) {
            failure.printStackTrace();
            // Threads of Redisson's would keep the process alive.
            System.exit(1);
        }
    }

    private static void work(String[] arguments) throws Exception {
        var json = new ObjectMapper();
        var driver = new Driver(json.readTree(arguments[0]));
        // Warms up: the JVM compiles a method after some thousands of calls.
        for (var i = 0; i < 10_000 / driver.clients.size(); i++) {
            var lock = driver.lock("warm-up/" + ProcessHandle.current().pid());
            lock.lock();
            lock.unlock();
        }
        System.out.println("ready");
        while (driver.hear()) {
            System.out.println(json.writeValueAsString(driver.turn()));
        }
    }

    private Object turn() throws Exception {
        return switch (job.get("work").asText()) {
            case "pairs" -> pairs();
            case "acquire" -> acquires();
            case "holds" -> holds();
            case "keep" -> keep();
            default -> throw new IllegalArgumentException("no work of that name");
        };
    }

    private Driver(JsonNode job) {
        this.job = job;
        for (var port : job.get("ports")) {
            var config = new Config();
            config.setLockWatchdogTimeout(number("lease_millis"));
            config.useSingleServer().setAddress("redis://127.0.0.1:" + port.asInt());
            clients.add(Redisson.create(config));
        }
    }

    private int number(String field) {
        return job.get(field).asInt();
    }

    private String names() {
        return job.get("names").asText();
    }

    @SuppressWarnings("deprecation")
    private RLock lock(String name) {
        if (clients.size() == 1) {
            return clients.get(0).getLock(name);
        }
        return new RedissonRedLock(clients.stream().map(client -> client.getLock(name)).toArray(RLock[]::new));
    }

    /** Waits for the next line of the harness. Returns false if there is none. */
    private boolean hear() throws IOException {
        return input.readLine() != null;
    }

    private interface Body<T> {
        void run(int caller, List<T> results) throws Exception;
    }

    /** Runs each caller on a thread: for Redisson a thread is the owner of a lock. */
    private <T> List<T> callers(int callers, Body<T> body) throws Exception {
        var began = System.nanoTime();
        var millis = number("millis");
        var pool = Executors.newFixedThreadPool(callers);
        var tasks = new ArrayList<Callable<List<T>>>();
        for (var caller = 0; caller < callers; caller++) {
            var number = caller;
            tasks.add(() -> {
                var results = new ArrayList<T>();
                while (System.nanoTime() - began < millis * 1_000_000L) {
                    body.run(number, results);
                }
                return results;
            });
        }
        var all = new ArrayList<T>();
        for (var results : pool.invokeAll(tasks)) {
            all.addAll(results.get());
        }
        pool.shutdown();
        return all;
    }

    private void pause() throws InterruptedException {
        sleep(number("pause_micros"));
    }

    private void sleep(int micros) throws InterruptedException {
        if (micros != 0) {
            Thread.sleep(micros / 1000, micros % 1000 * 1000);
        }
    }

    private Object pairs() throws Exception {
        var began = System.nanoTime();
        var pairs = callers(number("callers"), (caller, results) -> {
            var lock = lock(names() + "/" + caller);
            lock.lock();
            lock.unlock();
            results.add(1);
        });
        return Map.of("pairs", pairs.size(), "micros", (System.nanoTime() - began) / 1000);
    }

    private Object acquires() throws Exception {
        var releases = new ArrayList<Double>();
        var pairs = new ArrayList<Double>();
        var acquires = callers(1, (Body<Double>) (caller, results) -> {
            var lock = lock(names());
            results.add(micros(lock::lock));
            pause();
            releases.add(micros(lock::unlock));
            pause();
            pairs.add(micros(() -> {
                lock.lock();
                lock.unlock();
            }));
            pause();
        });
        return Map.of("acquires", acquires, "releases", releases, "pairs", pairs);
    }

    private static double micros(Runnable work) {
        var asked = System.nanoTime();
        work.run();
        return (System.nanoTime() - asked) / 1e3;
    }

    private Object holds() throws Exception {
        var holds = callers(number("callers"), (caller, results) -> {
            var lock = lock(names());
            lock.lock();
            var from = date();
            sleep(number("hold_micros"));
            results.add(new long[] {from, date()});
            lock.unlock();
            pause();
        });
        return Map.of("holds", holds);
    }

    private Object keep() throws Exception {
        var locks = new ArrayList<RLock>();
        var asked = new ArrayList<CompletableFuture<Void>>();
        for (var number = 0; number < number("locks"); number++) {
            var lock = lock("%s/%020d".formatted(names(), number));
            locks.add(lock);
            asked.add(lock.lockAsync(1).toCompletableFuture());
            if (asked.size() == 100) {
                CompletableFuture.allOf(asked.toArray(CompletableFuture[]::new)).get();
                asked.clear();
            }
        }
        CompletableFuture.allOf(asked.toArray(CompletableFuture[]::new)).get();
        System.out.println("held");
        hear();
        var held = 0;
        for (var lock : locks) {
            held += lock.isHeldByThread(1) ? 1 : 0;
        }
        return Map.of("held", held);
    }

    /** Microseconds since 1970, which all processes of a machine share. */
    private static long date() {
        var now = Instant.now();
        return now.getEpochSecond() * 1_000_000 + now.getNano() / 1000;
    }
}
