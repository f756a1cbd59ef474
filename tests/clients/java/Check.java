import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/** What the tests of both clients share: a list of named tests, and what is compared in them. */
final class Check {
    /** A test; what it throws makes it fail. */
    interface Test {
        void run() throws Exception;
    }

    private record Named(String name, Test test) {}

    private final List<Named> tests = new ArrayList<>();

    /** Where the server is, from TOKAIDO_ADDRESS. */
    static String[] address() {
        String address = System.getenv("TOKAIDO_ADDRESS");
        if (address == null) {
            System.err.println("TOKAIDO_ADDRESS is not set; run `cargo xtask test java`");
            System.exit(2);
        }
        return address.split(":");
    }

    void add(String name, Test test) {
        tests.add(new Named(name, test));
    }

    /** Runs all tests, says what became of each, and ends the process. */
    void run() {
        int failed = 0;
        for (Named named : tests) {
            try {
                named.test().run();
                System.out.println("ok      " + named.name());
            } catch (Throwable failure) {
                failed += 1;
                System.out.println("FAILED  " + named.name());
                failure.printStackTrace(System.out);
            }
        }
        System.out.printf("%d tests, %d failed%n", tests.size(), failed);
        System.exit(failed == 0 ? 0 : 1);
    }

    static void same(String what, Object got, Object wanted) {
        boolean isSame = got instanceof byte[] bytes
            ? wanted instanceof byte[] others && Arrays.equals(bytes, others)
            : Objects.equals(got, wanted);
        if (!isSame) {
            throw new AssertionError(what + ": got " + got + ", wanted " + wanted);
        }
    }

    /** What is thrown has to be of that kind and to say that. */
    static void fails(String what, Class<? extends Throwable> kind, String message, Test test) {
        try {
            test.run();
        } catch (Throwable failure) {
            if (kind.isInstance(failure) && String.valueOf(failure.getMessage()).contains(message)) {
                return;
            }
            throw new AssertionError(what + ": " + failure, failure);
        }
        throw new AssertionError(what + " did not fail");
    }
}
