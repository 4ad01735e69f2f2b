import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import java.io.ByteArrayInputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.List;

/** A server with its data in memory: Server PORT [CERTIFICATE KEY], both files in PEM. */
public final class Server {
    /** The version that it states. The driver takes no server as old as the one that is stated by default. */
    private static final class Stated implements MongoVersion {
        @Override
        public List<Integer> getVersionArray() {
            return List.of(5, 0, 0);
        }

        @Override
        public int getWireVersion() {
            return 13;
        }
    }

    private Server() {}

    public static void main(String[] arguments) throws Exception {
        MemoryBackend data = new MemoryBackend();
        data.version(new Stated());
        MongoServer server = new MongoServer(data);
        if (arguments.length == 3) {
            server.enableSsl(key(arguments[2]), null, certificate(arguments[1]));
        }
        server.bind("127.0.0.1", Integer.parseInt(arguments[0]));
        Thread.currentThread().join();
    }

    private static X509Certificate certificate(String file) throws Exception {
        byte[] text = Files.readAllBytes(Path.of(file));
        CertificateFactory factory = CertificateFactory.getInstance("X.509");
        return (X509Certificate) factory.generateCertificate(new ByteArrayInputStream(text));
    }

    private static PrivateKey key(String file) throws Exception {
        String text = Files.readString(Path.of(file)).replaceAll("-----[A-Z ]+-----|\\s", "");
        PKCS8EncodedKeySpec bytes = new PKCS8EncodedKeySpec(Base64.getDecoder().decode(text));
        return KeyFactory.getInstance("EC").generatePrivate(bytes);
    }
}
