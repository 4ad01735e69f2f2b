import java.util.concurrent.ThreadLocalRandom;
import java.util.logging.LogManager;
import org.redisson.api.RedissonClient;

/**
 * A client of a storm on real servers that uses Redisson's locks. It does the same work as the clients of Quorlock: it
 * thinks, acquires a name, works, checks from time to time whether it still holds the name, and releases it.
 *
 * <p>Arguments: the port of the command, the number of the client, how many times the client was restarted, and a
 * suffix of all names, which may be empty.
 */
public final class Client {
    private final Reports reports;
    private final Settings settings;
    private final String suffix;
    private int holds;

    private Client(Reports reports, Settings settings, String suffix) {
        this.reports = reports;
        this.settings = settings;
        this.suffix = suffix;
    }

    public static void main(String[] arguments) throws Exception {
        // Clients may write nothing to standard error. Errors of operations are reported instead.
        LogManager.getLogManager().reset();
        var reports = Reports.open(Integer.parseInt(arguments[0]));
        reports.hello(Integer.parseInt(arguments[1]), Integer.parseInt(arguments[2]));
        var settings = new Settings(reports.first());
        reports.listen();
        var suffix = arguments.length < 4 ? "" : arguments[3];
        new Client(reports, settings, suffix).work();
        // Threads of Redisson's would keep the process alive.
        Runtime.getRuntime().halt(0);
    }

    private void work() throws InterruptedException {
        var redisson = connect();
        if (redisson != null) {
            // The storm begins when every client has said this.
            reports.say("ready", null);
        }
        while (!reports.isOver()) {
            Settings.sleep(settings.think());
            // For Redisson a thread is the owner of a lock. A thread for each hold makes each hold an owner of its own,
            // so that a request of an earlier hold that arrives late is never taken for one of this hold.
            var hold = new Hold(reports, settings, redisson, ++holds, suffix);
            var turn = new Thread(hold::turn);
            turn.start();
            turn.join();
        }
    }

    /** Connects to the server, and tries again while it is down. */
    private RedissonClient connect() throws InterruptedException {
        while (!reports.isOver()) {
            try {
                return settings.connect();
            } catch (RuntimeException error) {
                reports.failed("connect", error);
                Thread.sleep(100 + ThreadLocalRandom.current().nextInt(50));
            }
        }
        return null;
    }
}
