# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The programs that interrupted_test.py interrupts, each with what shows that it is in the middle, and with what it
does not do for a reason of its own."""
import dataclasses
import signal

from support import mpi

SERVER, CLIENT = "127.79.0.1", "127.79.0.2"
NETWORK_SERVER = "10.231.0.1"  # in a network namespace of its own
SERVERS, CLIENTS, BOTH = ("server",), ("client",), ("server", "client")
FOREVER = "100000000"
DTEST_PORT = "15828"  # of the TCP connection by which dtest's programs find each other

NGINX = """{user}
daemon off; master_process off; pid {folder}/nginx.pid; error_log stderr info;
events {{ worker_connections 64; }}
http {{
  access_log off;
  client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
  uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
  server {{ listen {port}; root {folder}; }}
}}
"""


@dataclasses.dataclass(frozen=True)
class Case:
    """A server and a client, and what shows that they are in the middle."""
    name: str
    server: tuple
    client: tuple
    # "traffic": they exchange messages until they are killed; "connecting": the client makes `count` connections and
    # succeeds; "copy": it fetches or sends a file; "waiting": the server waits, and serves a client that comes
    # afterwards; "held": the server is stopped while a client makes `count` requests for connections; "brief": they are
    # connected, and end soon.
    kind: str
    count: int = 0
    server_ends: bool = True  # with its client
    outlives: tuple = ()  # "server", "client": goes on without softibd, for a reason of its own
    dies_by: tuple = ()  # signals with which a survivor may end, for a reason of its own
    quiet: tuple = ()  # "server", "client": ends with 0 all the same, for a reason of its own
    deaf: tuple = ()  # "server", "client": does not end when the other one is killed, for a reason of its own
    more: tuple = ()  # options of `softib run`
    tcp_port: str = ""  # at which the server listens beside softib first; "PORT": the free port of its words
    ready: str = ""  # what the server says once it is there
    hold: str = ""  # what the server says once it may be stopped
    says: str = ""  # what both sides say when they succeed
    most: int = 2000  # messages before the interruption
    connections: int = 1  # that they have between them in the middle
    announces_early: bool = False  # the server has its client come before it listens
    connectionless: bool = False
    repeats: bool = False  # what gets lost, all the time
    loses: bool = False  # it waits without end for a datagram that was lost: a new pair must be served
    networks: bool = False  # its nodes are in network namespaces of their own

    @property
    def copies(self):
        return self.kind == "copy"

    @property
    def needs(self):
        return [next(word for word in words if word not in ("stdbuf", "-oL", "-eL")) for words in (self.server, self.client)]


@dataclasses.dataclass(frozen=True)
class Job:
    """Ranks of MPI on both nodes, which exchange messages until one of them is killed."""
    name: str
    kind: str  # openmpi, mpich
    words: tuple = ()
    env: dict = dataclasses.field(default_factory=dict)
    # A rank that lost its connection may go on with bytes that have not arrived, for a reason of its own.
    goes_on_wrong: bool = False
    # As of a case.
    networks = False
    tcp_port = ""

    @property
    def needs(self):
        return (self.launcher[0],)

    @property
    def launcher(self):
        return mpi.OPENMPI if self.kind == "openmpi" else mpi.MPICH


def perftest_case(name, *options, **more):
    """Its server waits for the second connection without an eye on the first one, over which both sides speak of it."""
    words = (name, "-R", "-F", "-p", "PORT", *options)
    return Case(f"{name} -R", words, (*words, SERVER), "traffic", connections=2, **more)


def by_qperf(test):
    return ("qperf", "-lp", "PORT"), ("qperf", "-lp", "PORT", SERVER, "-cm1", "-t", "1000", test)


def by_udpong(*options):
    return ("udpong", "-b", NETWORK_SERVER, *options), ("udpong", "-s", NETWORK_SERVER, "-C", FOREVER, "-S", "512", *options)


def by_fi_pingpong(kind, provider="verbs"):
    words = ("fi_pingpong", "-p", provider, "-e", kind, "-S", "2048", "-I", FOREVER)
    return (*words, "-B", "PORT"), (*words, "-P", "PORT", SERVER)


def by_fio(verb, *options):
    words = ("fio", "--thread", "--name=job", "--ioengine=rdma", "--port=PORT", "--bs=65536", "--size=4m", "--time_based",
             "--runtime=1000")
    return (*words, "--rw=read", "--iodepth=16"), (*words, f"--hostname={SERVER}", f"--verb={verb}", "--rw=write",
                                                   "--iodepth=1", "--iodepth_batch_complete=1", *options)


def by_dapltest(provider):
    endless = ("-i", FOREVER, "-t", "1", "-w", "1", "client", "SR", "4096", "server", "SR", "4096")
    return (("stdbuf", "-oL", "-eL", "dapltest", "-T", "S", "-D", provider),
            ("dapltest", "-T", "T", "-D", provider, "-s", SERVER, *endless))


def by_dtest(name, *options):
    words = ("stdbuf", "-oL", name, "-P", "ofa-v2-ib0", *options)
    return words, (*words, "-h", SERVER)


def both(name, *options):
    return (name, "-s", "-a", SERVER, *options), (name, "-c", "-a", SERVER, *options)


def with_server(name, *options):
    return (name, *options), (name, "-s", SERVER, *options)


CASES = [
    Case("rping", *both("rping", "-C", FOREVER), "traffic"),
    Case("rping -V", *both("rping", "-C", FOREVER, "-V", "-S", "4000"), "traffic"),
    Case("rping -q", *both("rping", "-C", FOREVER, "-q"), "traffic"),
    # Its server serves further clients.
    Case("rping -P", ("rping", "-s", "-P", "-a", SERVER), ("rping", "-c", "-a", SERVER, "-C", FOREVER), "traffic",
         deaf=SERVERS),
    # After the end of the stream (0) it looks at errno, which has the EAGAIN of an earlier call, and calls again.
    Case("rstream", *with_server("rstream", "-S", "65536", "-I", FOREVER), "traffic", deaf=BOTH),
    Case("rstream -T b", *with_server("rstream", "-S", "65536", "-I", FOREVER, "-T", "b"), "traffic",
         deaf=BOTH),
    # It looks at nothing but the memory that its peer writes: it does not end when its peer is killed, either.
    Case("riostream", *with_server("riostream", "-S", "4096", "-I", FOREVER), "traffic", outlives=BOTH, deaf=BOTH),
    # Its server serves further clients, and rsockets post a receive that was flushed again, without end. Its client
    # repeats what has no answer.
    Case("udpong", *by_udpong(), "traffic", networks=True, connectionless=True, repeats=True, outlives=BOTH,
         deaf=BOTH),
    # After a timeout rpoll() keeps its mark as a poller (pollcnt), and then may wait for itself without end.
    Case("udpong -T e", *by_udpong("-T", "e"), "traffic", networks=True, connectionless=True, repeats=True, loses=True,
         outlives=BOTH, deaf=BOTH),
    perftest_case("ib_send_bw", "-D", "1000"),
    perftest_case("ib_send_lat", "-n", FOREVER),
    perftest_case("ib_write_bw", "-D", "1000"),
    # Both sides look at nothing but the memory that the other one writes.
    perftest_case("ib_write_lat", "-n", FOREVER, outlives=BOTH, deaf=BOTH),
    perftest_case("ib_read_bw", "-D", "1000"),
    perftest_case("ib_read_lat", "-n", FOREVER),
    perftest_case("ib_atomic_bw", "-D", "1000"),
    perftest_case("ib_atomic_lat", "-n", FOREVER),
    # Its server waits for the next client, by TCP, and tells it the port of librdmacm before it listens there.
    *(Case(f"qperf -cm1 {test}", *by_qperf(test), "traffic", server_ends=False, outlives=SERVERS, deaf=SERVERS,
           tcp_port="PORT", announces_early=True)
      for test in ("rc_bw", "rc_lat", "rc_rdma_write_bw")),
    # Once a call has failed, its server writes to times that only a client has (SIGSEGV), and its client waits for a
    # count of events.
    Case("cmtime", ("cmtime", "-c", "1500"), ("cmtime", "-s", SERVER, "-c", "1500"), "connecting", 1500,
         server_ends=False, outlives=BOTH, deaf=BOTH),
    # If ibv_reg_mr fails it deregisters the region that it has not got: ibv_dereg_mr(NULL).
    Case("ucmatose", ("ucmatose", "-b", SERVER, "-c", "500", "-C", "5"), ("ucmatose", "-s", SERVER, "-c", "500", "-C", "5"),
         "connecting", 500, dies_by=(signal.SIGSEGV,)),
    # Both sides poll for the datagrams of the other one without end, and so for those that are lost, or whose sender is
    # gone.
    Case("udaddy", ("udaddy", "-b", SERVER, "-c", "100", "-C", "5"), ("udaddy", "-s", SERVER, "-c", "100", "-C", "5"), "held",
         100, deaf=SERVERS),
    # Its server waits for the next client. Its client, if it waits for room at a peer that is gone, looks at neither
    # the event of that nor the receives that come back: it waits for completions of sends.
    Case("rcopy", ("rcopy",), ("rcopy", "SOURCE", f"{SERVER}:TARGET"), "copy", server_ends=False, outlives=SERVERS,
         deaf=BOTH),
    Case("rdma_server", ("rdma_server",), ("rdma_client", "-s", SERVER), "waiting"),
    Case("rdma_server, connecting", ("rdma_server",), ("rdma_client", "-s", SERVER), "held", 1),
    Case("rdma_xserver", ("rdma_xserver", "-c", "r"), ("rdma_xclient", "-s", SERVER, "-c", "r"), "held", 1),
    Case("rdma_xserver, XRC", ("rdma_xserver", "-c", "x"), ("rdma_xclient", "-s", SERVER, "-c", "x"), "held", 1),
    # A member of a group cannot see the end of another one.
    Case("mckey", ("stdbuf", "-oL", "mckey", "-m", "239.79.1.1", "-c", "1", "-C", "5", "-b", SERVER),
         ("mckey", "-m", "239.79.1.1", "-c", "1", "-C", "5", "-s", "-b", CLIENT), "waiting", ready="joined dgid",
         deaf=SERVERS),
    Case("fi_pingpong msg", *by_fi_pingpong("msg"), "traffic", tcp_port="PORT"),
    # A receive of an endpoint of this type belongs to no connection: it does not fail when one ends.
    Case("fi_pingpong rdm", *by_fi_pingpong("rdm", "verbs;ofi_rxm"), "traffic", tcp_port="PORT", deaf=BOTH),
    # rxd does not pass on that its completion queue fails.
    Case("fi_pingpong rdm, rxd", *by_fi_pingpong("rdm", "verbs;ofi_rxd"), "traffic", tcp_port="PORT", connectionless=True,
         repeats=True, outlives=BOTH, deaf=BOTH),
    # It waits without a timeout for each datagram.
    Case("fi_pingpong dgram", *by_fi_pingpong("dgram"), "traffic", tcp_port="PORT", loses=True, connectionless=True,
         deaf=BOTH),
    # Its receiver takes the end of its sender for that of the job; its sender polls without end.
    Case("fio write", *by_fio("write"), "traffic", quiet=SERVERS, deaf=CLIENTS),
    Case("fio read", *by_fio("read"), "traffic", quiet=SERVERS, deaf=CLIENTS),
    # It connects without RNR retries: its sender may not overtake its receiver. The receiver waits for its receives,
    # and reads no event of its connection.
    Case("fio send", *by_fio("send", "--thinktime=2000"), "traffic", quiet=SERVERS, deaf=BOTH, most=100),
    # Its server waits for the next client, by events that only a connection brings: libdapl2 has no other way to tell
    # its caller. Its client says that it failed, and ends with 0; so do dtest and dtestcm.
    Case("dapltest", *by_dapltest("ofa-v2-ib0"), "traffic", server_ends=False, outlives=SERVERS, deaf=SERVERS,
         quiet=CLIENTS),
    # Its server waits for the end of the connection.
    Case("dtest", *by_dtest("dtest", "-B", "200000", "-b", "1048576"), "traffic", tcp_port=DTEST_PORT, announces_early=True,
         outlives=SERVERS, quiet=BOTH),
    Case("dtestx", *by_dtest("dtestx"), "brief", tcp_port=DTEST_PORT, announces_early=True, says="PASSED"),
    # Both sides wait for the answers to their requests, or for the end of their connections.
    Case("dtestcm", *by_dtest("dtestcm", "-w", "-c", "30", "-b", "30"), "held", 30, tcp_port=DTEST_PORT, hold="Accepting",
         says="ALL 30 CONNECTED", outlives=BOTH),
    # Its server waits for the next client.
    Case("curl and nginx --sockets", ("nginx", "-c", "RUNTIME/nginx.conf", "-p", "RUNTIME", "-e", "stderr"),
         ("curl", "-sS", "--limit-rate", "200M", "-o", "TARGET", f"http://{SERVER}:PORT/source"), "copy",
         server_ends=False, outlives=SERVERS, deaf=SERVERS, more=("--sockets",)),
    # Streams go on without softibd (docs/lifecycle.md).
    Case("iperf3 --sockets", ("iperf3", "-s", "-1", "-p", "PORT"), ("iperf3", "-c", SERVER, "-p", "PORT", "-t", "1000"),
         "traffic", quiet=SERVERS, outlives=BOTH, more=("--sockets",)),
    # Its server waits for the next client, as it would after its network has gone. Its client takes each failure to
    # write for EAGAIN, and writes again without end.
    Case("redis --sockets", ("redis-server", "--port", "PORT", "--bind", SERVER, "--save", "", "--protected-mode", "no"),
         ("redis-benchmark", "-h", SERVER, "-p", "PORT", "-l", "-t", "set", "-q"), "traffic", server_ends=False,
         outlives=BOTH, deaf=BOTH, more=("--sockets",)),
    Job("OpenMPI, btl openib", "openmpi", mpi.OPENIB, mpi.OPENIB_ENV),
    Job("OpenMPI, pml ucx", "openmpi"),
    # mtl ofi takes a receive that was flushed for one that was cancelled, and MPI_Sendrecv succeeds.
    Job("OpenMPI, mtl ofi", "openmpi", mpi.OFI, goes_on_wrong=True),
    Job("MPICH", "mpich"),
]
# For Ethernet ports OpenMPI's openib has no connection manager, and rsockets make address handles of datagrams without
# a GID. Of the others, one case of each kind of connection.
NOT_ON_ETHERNET = {"OpenMPI, btl openib", "udpong", "udpong -T e"}
VARIANTS = {"rping -V", "rping -q", "rping -P", "rstream -T b", "ib_send_lat -R", "ib_write_lat -R", "ib_read_bw -R",
            "ib_atomic_bw -R", "qperf -cm1 rc_lat", "qperf -cm1 rc_rdma_write_bw", "rdma_server, connecting",
            "rdma_xserver, XRC", "fi_pingpong rdm, rxd"}
ETHERNET_CASES = {case.name for case in CASES} - NOT_ON_ETHERNET - VARIANTS
