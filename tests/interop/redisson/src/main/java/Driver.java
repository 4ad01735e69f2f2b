import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Executes commands on Redisson's locks, one for each line of input.
 *
 * <p>A line is {@code <id> <thread> <verb> <mode> <names> <addresses> [<argument>...]}, with lists joined by commas.
 * The answer is the line {@code <id> ok [<value>]} or {@code <id> failed <exception> <message>}.
 *
 * <p>Each thread executes its commands in order, and threads do not wait for each other. For Redisson a thread is the
 * owner of a lock. The command {@code <id> <thread> sleeps} is answered at once: whether the thread waits for a release.
 * The program ends with its input, and releases nothing.
 */
public final class Driver {
    private final Clients clients;
    private final Map<String, Worker> workers = new ConcurrentHashMap<>();

    private Driver(Clients clients) {
        this.clients = clients;
    }

    /** The only argument is Redisson's lockWatchdogTimeout in milliseconds. */
    public static void main(String[] arguments) throws IOException {
        var driver = new Driver(new Clients(Long.parseLong(arguments[0])));
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            driver.hear(line);
        }
        Runtime.getRuntime().halt(0);
    }

    private void hear(String line) {
        var words = line.split(" ");
        if (words[2].equals("sleeps")) {
            var worker = workers.get(words[1]);
            say(words[0] + " ok " + (worker != null && worker.sleeps()));
            return;
        }
        var worker = workers.computeIfAbsent(words[1], name -> new Worker(name, clients));
        worker.hear(words);
    }

    /** One thread, and the locks that its commands have named. */
    private static final class Worker {
        private final ExecutorService tasks;
        private volatile Thread thread;
        private final Map<String, Actions> locks = new ConcurrentHashMap<>();
        private final Clients clients;

        Worker(String name, Clients clients) {
            this.clients = clients;
            tasks = Executors.newSingleThreadExecutor(task -> {
                thread = new Thread(task, name);
                thread.setDaemon(true);
                return thread;
            });
        }

        void hear(String[] words) {
            tasks.execute(() -> {
                try {
                    var key = String.join(" ", words[3], words[4], words[5]);
                    var lock = locks.computeIfAbsent(key, k -> Actions.of(clients, words[3], words[4], words[5]));
                    say(words[0] + " ok " + lock.perform(words));
                } catch (Throwable e) {
                    // Some versions wrap the exception, others do not.
                    var cause = e instanceof CompletionException ? e.getCause() : e;
                    var message = String.valueOf(cause.getMessage()).replaceAll("\\s+", " ");
                    say(words[0] + " failed " + cause.getClass().getSimpleName() + " " + message);
                }
            });
        }

        /** Whether the thread waits for the message of a release. Before this it can miss a message. */
        boolean sleeps() {
            return Arrays.stream(thread.getStackTrace())
                    .anyMatch(frame -> frame.getClassName().equals("java.util.concurrent.Semaphore"));
        }
    }

    private static void say(String line) {
        synchronized (System.out) {
            System.out.println(line);
            System.out.flush();
        }
    }
}
