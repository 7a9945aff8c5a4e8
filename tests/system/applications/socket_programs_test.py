#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Servers and clients of the distribution over streams: unmodified TCP programs under `softib run --sockets`.

socket_programs_test.py [--as root|nobody] [--only REGEX] [--link-layer ethernet]

--only: the parts of those names (nginx, postgres, ...). The server is on node 0 and its client on node 1. Each case
compares what arrives with what was sent, or with what a client without the switch gets from the same server, and
checks that the ports of the fabric have carried as many bytes.
"""
import contextlib
import hashlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness
from harness import Failed
from sockets_test import SWITCH, readable, run

SECONDS = 40
SERVER, CLIENT = harness.ADDRESSES
SIZE = 6 << 20
PYTHON = "/usr/bin/python3"


def sent_bytes(fabric):
    """By all ports together."""
    ports = [port for node in fabric.state()["nodes"] for hca in node["hcas"] for port in hca["ports"]]
    return sum(port["counters"]["sent_bytes"] for port in ports)


@contextlib.contextmanager
def over_streams(report, fabric, title, least):
    """A case whose connections carry at least so many bytes over the fabric."""
    with report.case(title) as remarks:
        before = sent_bytes(fabric)
        yield remarks
        carried = sent_bytes(fabric) - before
        remarks.append(f"{carried / (1 << 20):.2f} MiB")
        if carried < least:
            raise Failed(f"the fabric has carried {carried} bytes, expected {least}: not all was over streams")


def serve(fabric, words, port, more=SWITCH, **settings):
    server = fabric.start(words, 0, more=more, **settings)
    harness.wait_until(lambda: harness.is_listening(server.pid, port) or not server.running(), SECONDS,
                       f"{server.describe()} to listen; it says:\n{harness.tail(server.text())}")
    if not server.running():
        raise Failed(f"{server.describe()} ended:\n{harness.tail(server.text())}")
    return server


@contextlib.contextmanager
def serving(fabric, words, port, **settings):
    """A server in the foreground, for the block; it ends by SIGTERM."""
    server = serve(fabric, words, port, **settings)
    try:
        yield server
        if not server.running():
            raise Failed(f"{server.describe()} ended:\n{harness.tail(server.text())}")
    finally:
        end(server)


def end(server, number=signal.SIGTERM):
    with contextlib.suppress(ProcessLookupError):
        os.kill(server.pid, number)
    if server.wait(SECONDS) is None:
        raise Failed(f"{server.describe()} does not end:\n{harness.tail(server.text())}")


def same_as_plain(fabric, words, *patterns, **settings):
    """Runs a client with the switch and without, which has to get the same. Returns its output."""
    switched = run(fabric, words, **settings).require(*patterns).text
    plain = fabric.run(words, 1, SECONDS).require().text
    if switched != plain:
        raise Failed(f"{words[0]} gets other output than over TCP:\n{harness.tail(switched)}\n    over TCP:\n"
                     f"{harness.tail(plain)}")
    return switched


def data_file(folder, name="data", size=SIZE):
    path = folder / name
    if not path.exists():
        path.write_bytes(harness.random.Random(20261129).randbytes(size))
        path.chmod(0o644)
    return path


def same_bytes(path, wanted):
    if harness.digest(path) != hashlib.sha256(wanted).hexdigest():
        raise Failed(f"{path.name} has {path.stat().st_size} bytes that are not the {len(wanted)} wanted")


def is_root(folder):
    return folder.stat().st_uid == 0


def not_root(folder):
    """The words before a program that refuses to be root's: it gets another uid in a user namespace of its own, and
    keeps root's access to softibd."""
    if not is_root(folder):
        return []
    words = [harness.need_program("unshare"), "--user", "--map-user=1000", "--map-group=1000"]
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode != 0:
        raise harness.Skipped("there are no user namespaces for root here")
    return words


def tool(fabric, words, seconds=SECONDS):
    """A program that prepares files, as the user and without the switch."""
    return fabric.run(words, 0, seconds).require()


def own_folder(fabric, folder, name):
    path = folder / name
    tool(fabric, ["mkdir", "-p", path])
    return path


NGINX = """{user}
daemon off; worker_processes {workers}; pid {folder}/nginx.pid; error_log stderr warn;
events {{ worker_connections 256; }}
http {{
  log_format line '$remote_addr $connection_requests $request';
  access_log {folder}/access.log line;
  client_max_body_size 0; sendfile on; keepalive_requests 100000;
  client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
  uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
  server {{ listen {port}{options}; root {folder}; dav_methods PUT; }}
}}
"""


@contextlib.contextmanager
def nginx_server(fabric, folder, options="", workers=3, user="root"):
    program = harness.need_program("nginx")
    port = harness.free_port()
    own = folder / f"nginx{port}"
    tool(fabric, ["mkdir", own])
    shutil.copy(data_file(folder), own / "data")
    (own / "small").write_text("0123456789abcdef" * 60)
    config = own / "nginx.conf"
    config.write_text(NGINX.format(folder=own, port=port, options=options, workers=workers,
                                   user=f"user {user};" if is_root(folder) else ""))
    for file in ("data", "small", "nginx.conf"):
        (own / file).chmod(0o644)
    with serving(fabric, [program, "-c", config, "-p", own, "-e", "stderr"], port):
        yield port, own


def nginx(fabric, report, folder):
    data = data_file(folder).read_bytes()
    with over_streams(report, fabric, "nginx and curl: kept connections, ranges, at once, upload", 6 * SIZE):
        curl = [harness.need_program("curl"), "-sS", "-f"]
        with nginx_server(fabric, folder) as (port, own):
            url = f"http://{SERVER}:{port}"
            run(fabric, [*curl, "-o", folder / "c1", "-o", folder / "c2", "-o", folder / "c3", f"{url}/data",
                         f"{url}/small", f"{url}/data"]).require()
            same_bytes(folder / "c3", data)
            if f"{CLIENT} 3 GET /data" not in (own / "access.log").read_text():
                raise Failed("the connection was not kept")
            run(fabric, [*curl, "-r", "1000-2999999", "-o", folder / "c4", f"{url}/data"]).require()
            same_bytes(folder / "c4", data[1000:3000000])
            many = [word for number in range(4) for word in ("-o", folder / f"z{number}", f"{url}/data?{number}")]
            run(fabric, [*curl, "-Z", "--parallel-immediate", *many]).require()
            for number in range(4):
                same_bytes(folder / f"z{number}", data)
            run(fabric, [*curl, "-T", data_file(folder), f"{url}/up"]).require()
            same_bytes(own / "up", data)
    with over_streams(report, fabric, "nginx and wget: many files, a download that goes on", 2 * SIZE):
        wget = [harness.need_program("wget"), "-nv"]
        with nginx_server(fabric, folder) as (port, own):
            url = f"http://{SERVER}:{port}"
            run(fabric, [*wget, "-O", folder / "w1", f"{url}/small", f"{url}/data", f"{url}/small"]).require()
            small = (own / "small").read_bytes()
            same_bytes(folder / "w1", small + data + small)
            part = own_folder(fabric, folder, "part")
            tool(fabric, ["cp", own / "small", part / "data"])
            run(fabric, [*wget, "-c", "-P", part, f"{url}/data"]).require()
            same_bytes(part / "data", small + data[len(small):])


def other_users(fabric, report, folder):
    with over_streams(report, fabric, "nginx of root, with workers of another user: curl, ab", 3 * SIZE):
        ab, curl = harness.need_program("ab"), harness.need_program("curl")
        if not is_root(folder):
            raise harness.Skipped("only root can have programs of another user")
        folder.chmod(0o755)
        with nginx_server(fabric, folder, user="www-data") as (port, own):
            url = f"http://{SERVER}:{port}"
            for number in range(3):
                run(fabric, [curl, "-sS", "-f", "-o", folder / "u", f"{url}/data?{number}"]).require()
                same_bytes(folder / "u", data_file(folder).read_bytes())
            run(fabric, [ab, "-n", 300, "-c", 8, f"{url}/small"]).require(r"^Failed requests: +0$")
            if "127.0.0.1" in (own / "access.log").read_text():
                raise Failed("some connections are plain TCP")
    with over_streams(report, fabric, "memcached of another user: memccp, memccat", 1 << 20):
        program = harness.need_program("memcached")
        if not is_root(folder):
            raise harness.Skipped("only root can have programs of another user")
        port = harness.free_port()
        large = data_file(folder, "large", 700_000)
        with serving(fabric, [program, "-p", port, "-l", "0.0.0.0", "-U", 0, "-u", "nobody"], port):
            run(fabric, [harness.need_program("memccp"), f"--servers={SERVER}:{port}", large]).require()
            run(fabric, ["memccat", f"--servers={SERVER}:{port}", f"--file={folder}/got", "large"]).require()
            same_bytes(folder / "got", large.read_bytes())


def benchmarks(fabric, report, folder):
    with nginx_server(fabric, folder, " deferred") as (port, own), \
            nginx_server(fabric, folder, " http2") as (port2, _):
        size = (own / "small").stat().st_size
        for title, program, words, patterns, least in (
                ("ab, kept connections", "ab", ["-k", "-n", 2000, "-c", 16],
                 (r"^Complete requests: +2000$", r"^Failed requests: +0$", rf"^HTML transferred: +{2000 * size} "),
                 2000 * size),
                ("ab, a connection for each request", "ab", ["-n", 500, "-c", 16],
                 (r"^Complete requests: +500$", r"^Failed requests: +0$", rf"^HTML transferred: +{500 * size} "),
                 500 * size),
                # Of its read errors: a link that is readable too early, about once in 100,000 requests.
                ("wrk, 2 threads, 32 connections", "wrk", ["-t2", "-c32", "-d1"],
                 (r"requests in", r"^Requests/sec: +[1-9]"), 200 * size),
                ("h2load, HTTP/1.1", "h2load", ["--h1", "-n", 2000, "-c", 16, "-t", 2],
                 (r"2000 succeeded, 0 failed, 0 errored, 0 timeout",), 2000 * size),
                ("h2load, HTTP/2, 8 streams in each", "h2load", ["-p", "h2c", "-n", 2000, "-c", 8, "-m", 8],
                 (r"2000 succeeded, 0 failed, 0 errored, 0 timeout",), 2000 * size)):
            with over_streams(report, fabric, f"nginx and {title}", least):
                url = f"http://{SERVER}:{port2 if 'h2c' in words else port}/small"
                run(fabric, [harness.need_program(program), *words, url]) \
                    .require(*patterns, forbid=(r"connect [1-9]|read [1-9]\d|write [1-9]|timeout [1-9]", "Non-2xx"))


HAPROXY = """
global
  nbthread 2
defaults
  mode http
  timeout connect 5s
  timeout client 20s
  timeout server 20s
frontend in
  bind 0.0.0.0:{port}
  default_backend out
backend out
  balance roundrobin
  option httpchk GET /small
  server one {client}:{one} check
  server two {client}:{two} check
  http-response set-header x-peer "%[src]"
"""


def haproxy(fabric, report, folder):
    data = data_file(folder).read_bytes()
    with over_streams(report, fabric, "haproxy before two nginx, curl, ab", 12 * SIZE), contextlib.ExitStack() as stack:
        program = harness.need_program("haproxy")
        ab = harness.need_program("ab")
        ports = [stack.enter_context(nginx_server(fabric, folder, workers=1))[0] for _ in range(2)]
        port = harness.free_port()
        config = folder / "haproxy.cfg"
        config.write_text(HAPROXY.format(port=port, client=SERVER, one=ports[0], two=ports[1]))
        config.chmod(0o644)
        stack.enter_context(serving(fabric, [program, "-db", "-f", config], port))
        curl = [harness.need_program("curl"), "-sS", "-f"]
        many = [word for number in range(6) for word in ("-o", folder / f"h{number}",
                                                         f"http://{SERVER}:{port}/data?{number}")]
        run(fabric, [*curl, "-D", "-", "-Z", *many]).require(f"^x-peer: {CLIENT}")
        for number in range(6):
            same_bytes(folder / f"h{number}", data)
        run(fabric, [ab, "-k", "-n", 1000, "-c", 8, f"http://{SERVER}:{port}/small"]) \
            .require(r"^Failed requests: +0$")


APACHE = """
ServerName localhost
ServerRoot {folder}
PidFile {folder}/pid
Listen 0.0.0.0:{port}
Mutex default:{folder}
{user}
LoadModule mpm_{mpm}_module {modules}/mod_mpm_{mpm}.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule dir_module {modules}/mod_dir.so
StartServers 2
MaxRequestWorkers 50
MaxKeepAliveRequests 0
EnableSendfile On
ErrorLog {folder}/error.log
LogFormat "%a %k %r" line
CustomLog {folder}/access.log line
DocumentRoot {folder}/www
"""


def apache(fabric, report, folder):
    data = data_file(folder).read_bytes()
    for mpm in ("event", "prefork"):
        folder.chmod(0o755)
        with over_streams(report, fabric, f"apache2, mpm_{mpm}: curl, ab", 4 * SIZE):
            program = harness.need_program("apache2")
            ab = harness.need_program("ab")
            port = harness.free_port()
            own = own_folder(fabric, folder, f"apache_{mpm}")
            www = own_folder(fabric, own, "www")
            tool(fabric, ["cp", data_file(folder), www / "data"])
            config = own / "apache.conf"
            config.write_text(APACHE.format(folder=own, port=port, mpm=mpm, modules="/usr/lib/apache2/modules",
                                            user="User www-data\nGroup www-data" if is_root(folder) else ""))
            config.chmod(0o644)
            with serving(fabric, [program, "-D", "FOREGROUND", "-f", config], port):
                curl = [harness.need_program("curl"), "-sS", "-f"]
                url = f"http://{SERVER}:{port}/data"
                many = [word for number in range(3) for word in ("-o", folder / f"a{number}", f"{url}?{number}")]
                run(fabric, [*curl, "-Z", *many]).require()
                for number in range(3):
                    same_bytes(folder / f"a{number}", data)
                run(fabric, [*curl, "-r", "5-1000004", "-o", folder / "a4", url]).require()
                same_bytes(folder / "a4", data[5:1000005])
                run(fabric, [ab, "-k", "-n", 1000, "-c", 8, f"http://{SERVER}:{port}/nothing"]) \
                    .require("^Complete requests: +1000$", "^Non-2xx responses: +1000$")
                run(fabric, [ab, "-n", 200, "-c", 8, f"http://{SERVER}:{port}/nothing"]) \
                    .require("^Complete requests: +200$")
                run(fabric, [ab, "-k", "-n", 10, "-c", 2, url]).require(f"^HTML transferred: +{10 * SIZE} ")
                if CLIENT not in (own / "access.log").read_text():
                    raise Failed("apache does not see the client's address")


def memcached(fabric, report, folder):
    with over_streams(report, fabric, "memcached: memccp, memccat, memcslap", 1 << 20):
        program = harness.need_program("memcached")
        for word in ("memccp", "memccat", "memcslap"):
            harness.need_program(word)
        port = harness.free_port()
        words = [program, "-p", port, "-l", "0.0.0.0", "-U", 0, "-t", 4, *(["-u", "root"] if is_root(folder) else [])]
        large = data_file(folder, "large", 700_000)
        with serving(fabric, words, port):
            where = f"--servers={SERVER}:{port}"
            run(fabric, ["memccp", where, large]).require()
            run(fabric, ["memccat", where, f"--file={folder}/got", "large"]).require()
            same_bytes(folder / "got", large.read_bytes())
            for mode in ("set", "get"):
                run(fabric, ["memcslap", where, f"--test={mode}", "--concurrency=4", "--execute-number=500"]).require()
            run(fabric, ["memcstat", where]).require("^\\s+cmd_set: [1-9]")


def rsync(fabric, report, folder):
    with over_streams(report, fabric, "rsync daemon: a tree there and back, by checksums", 2 * SIZE):
        program = harness.need_program("rsync")
        port = harness.free_port()
        tree = own_folder(fabric, folder, "tree")
        tool(fabric, ["sh", "-c", f"cd {tree} && mkdir -p a/b c && cp {data_file(folder)} a/b/data && "
                                  "for i in $(seq 300); do echo file $i >c/$i; done && ln -s a/b/data link"])
        module = own_folder(fabric, folder, "module")
        config = folder / "rsyncd.conf"
        config.write_text(f"use chroot = no\nlog file = {folder}/rsyncd.log\n"
                          + ("uid = root\ngid = root\n" if is_root(folder) else "")
                          + f"[data]\npath = {module}\nread only = no\n")
        config.chmod(0o644)
        # rsync's daemon takes a standard input that is a socket for the connection.
        with serving(fabric, [program, "--daemon", "--no-detach", "--config", config, "--port", port], port):
            url = f"rsync://{SERVER}:{port}/data/"
            run(fabric, [program, "-a", "--checksum", f"{tree}/", url]).require()
            same_as_plain(fabric, [program, "-r", "--no-motd", url], "a/b/data")
            back = own_folder(fabric, folder, "back")
            run(fabric, [program, "-a", "--checksum", url, f"{back}/"]).require()
            tool(fabric, ["diff", "-r", "--no-dereference", tree, back])
            again = run(fabric, [program, "-ai", "--checksum", f"{tree}/", url]).require().text
            if again:
                raise Failed(f"not all was the same:\n{harness.tail(again)}")
            if CLIENT not in (folder / "rsyncd.log").read_text():
                raise Failed("the daemon does not see the client's address")


def socat(fabric, report, folder):
    for title, address in (("EXEC", "EXEC:cat"), ("EXEC of a program that gets the connection", "EXEC:cat,nofork"),
                           ("SYSTEM, a pipe", "SYSTEM:cat | cat,pipes"), ("a relay", None)):
        with over_streams(report, fabric, f"socat, fork, {title}", 2 * SIZE), contextlib.ExitStack() as stack:
            program = harness.need_program("socat")
            port = harness.free_port()
            if address is None:
                behind = harness.free_port()
                stack.enter_context(serving(fabric, [program, f"TCP-LISTEN:{behind},fork,reuseaddr", "EXEC:cat"],
                                            behind))
                address = f"TCP:{SERVER}:{behind}"
            stack.enter_context(serving(fabric, [program, f"TCP-LISTEN:{port},fork,reuseaddr", address], port))
            got = folder / f"socat{port}"
            for _ in range(2):
                run(fabric, ["sh", "-c", f"exec {program} -t 20 - TCP:{SERVER}:{port} <{data_file(folder)} >{got}"]) \
                    .require()
                same_bytes(got, data_file(folder).read_bytes())


def postgres(fabric, report, folder):
    with over_streams(report, fabric, "postgresql: psql, pgbench", SIZE):
        programs = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres"))
        if not programs:
            raise harness.Skipped("postgres is not installed (packages.txt)")
        psql = harness.need_program("psql")
        bench = programs[-1].parent / "pgbench"
        before = not_root(folder)
        base = folder / "pg"
        tool(fabric, [*before, programs[-1].parent / "initdb", "-D", base, "-U", "u", "-A", "trust", "--no-sync",
                      "--no-locale", "-E", "UTF8"])
        tool(fabric, ["sh", "-c", f"echo host all all 0.0.0.0/0 trust >>{base}/pg_hba.conf"])
        port = harness.free_port()
        words = [programs[-1], "-D", base, "-p", port, "-c", "listen_addresses=*", "-k", base, "-F"]
        with serving(fabric, words, port, after=before):
            where = ["-h", SERVER, "-p", port, "-U", "u"]
            ask = [psql, "-X", "-q", "-At", *where, "-d", "postgres", "-v", "ON_ERROR_STOP=1"]
            run(fabric, [*ask, "-c", "select client_addr from pg_stat_activity where pid = pg_backend_pid()"]) \
                .require(f"^{CLIENT}$")
            run(fabric, [*ask, "-c", "create table t as select i, md5(i::text) m from generate_series(1, 60000) i"]) \
                .require()
            same_as_plain(fabric, [*ask, "-c", "select * from t"], "^60000\\|")
            out = folder / "table"
            run(fabric, [*ask, "-c", f"\\copy t to {out}", "-c", "create table v (like t)", "-c",
                         f"\\copy v from {out}", "-c", "select count(*) from t natural join v"]).require("^60000$")
            run(fabric, [bench, *where, "-i", "-q", "postgres"]).require()
            run(fabric, [bench, *where, "-c", 8, "-j", 2, "-t", 40, "postgres"]) \
                .require("^number of failed transactions: 0 ", "processed: 320/320$")
            run(fabric, [bench, *where, "-S", "-C", "-c", 4, "-t", 20, "postgres"]).require("processed: 80/80$")


def mariadb(fabric, report, folder):
    with over_streams(report, fabric, "mariadb: a table of megabytes, 8 connections at once", SIZE):
        program = harness.need_program("mariadbd")
        client = harness.need_program("mariadb")
        base = own_folder(fabric, folder, "maria")
        user = ["--user=root"] if is_root(folder) else []
        port = harness.free_port()
        tool(fabric, [harness.need_program("mariadb-install-db"), "--no-defaults", f"--datadir={base}",
                      "--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve", *user])
        words = [program, "--no-defaults", *user, f"--datadir={base}", f"--socket={base}/s", f"--port={port}",
                 "--bind-address=0.0.0.0", "--skip-name-resolve", f"--init-file={base}/init",
                 "--innodb-flush-log-at-trx-commit=0"]
        tool(fabric, ["sh", "-c", f"echo \"create user u@'%';\ngrant all on *.* to u@'%';\" >{base}/init"])
        with serving(fabric, words, port):
            ask = [client, "--no-defaults", "-h", SERVER, f"--port={port}", "-u", "u", "-BN", "-e"]
            run(fabric, [*ask, "select host from information_schema.processlist where id = connection_id()"]) \
                .require(f"^{CLIENT}:")
            run(fabric, [*ask, "create database d; use d; create table t as select seq, md5(seq) m from seq_1_to_60000"]) \
                .require()
            same_as_plain(fabric, [*ask, "select * from d.t order by seq"], "^60000\t")
            harness.need_program("mariadb-slap")
            run(fabric, ["mariadb-slap", "--no-defaults", "-h", SERVER, f"--port={port}", "-u", "u",
                         "--auto-generate-sql", "--concurrency=8", "--number-of-queries=400"]).require("Benchmark")


def cluster(fabric, report, folder):
    with over_streams(report, fabric, "redis cluster of three", 1 << 20), contextlib.ExitStack() as stack:
        program = harness.need_program("redis-server")
        cli = harness.need_program("redis-cli")
        where = []
        for number in range(3):
            port = harness.free_port()
            own = own_folder(fabric, folder, f"redis{number}")
            where.append(f"{SERVER}:{port}")
            stack.enter_context(serving(fabric, [
                program, "--port", port, "--bind", "0.0.0.0", "--protected-mode", "no", "--save", "", "--dir", own,
                "--cluster-enabled", "yes", "--cluster-announce-ip", SERVER], port))
        run(fabric, [cli, "--cluster", "create", *where, "--cluster-yes"]).require("All 16384 slots covered")
        ask = [cli, "-c", "-h", SERVER, "-p", where[0].rsplit(":", 1)[1]]
        for one in where:
            state = [cli, "-h", SERVER, "-p", one.rsplit(":", 1)[1], "cluster", "info"]
            harness.wait_until(lambda: "cluster_state:ok" in run(fabric, state).text, SECONDS, f"{one} to be ready")
        for number in range(6):
            text = f"{number}x" * 20000
            run(fabric, [*ask, "set", f"key{number}", text]).require("^OK$")
            same_as_plain(fabric, [*ask, "get", f"key{number}"], f"^{text}$")
        bench = [harness.need_program("redis-benchmark"), *ask[2:], "--cluster", "-q", "-t", "set,get", "-n", 6000,
                 "-c", 12, "-d", 200]
        run(fabric, bench).require("SET: ", "GET: ", forbid=("rror",))
        run(fabric, [*ask, "--cluster", "check", where[0]]).require("All nodes agree about slots")


def python(fabric, report, folder):
    with over_streams(report, fabric, "python3 -m http.server: 4 downloads at once", 4 * SIZE):
        port = harness.free_port()  # its backlog is 5; a connection that finds it full stays TCP
        data = data_file(folder)
        with serving(fabric, [PYTHON, "-m", "http.server", "-d", folder, port], port):
            many = [word for number in range(4) for word in ("-o", folder / f"p{number}",
                                                             f"http://{SERVER}:{port}/data?{number}")]
            run(fabric, [harness.need_program("curl"), "-sS", "-f", "-Z", "--parallel-immediate", *many]).require()
            for number in range(4):
                same_bytes(folder / f"p{number}", data.read_bytes())
    with over_streams(report, fabric, "asyncio over uvloop: 40 connections at once", 40 * (1 << 17)):
        if subprocess.run([PYTHON, "-c", "import uvloop"], capture_output=True, check=False).returncode != 0:
            raise harness.Skipped("python3-uvloop is not installed (packages.txt)")
        port = harness.free_port()
        words = [PYTHON, readable(folder, "uvloop_echo.py"), port]
        with serving(fabric, words, port) as server:
            run(fabric, [*words, SERVER, 40]).require("^all right: 40$")
            if server.text().count(f"'{CLIENT}'") != 40:
                raise Failed(f"not over streams:\n{harness.tail(server.text())}")


def java(fabric, report, folder):
    jars = ":".join(f"/usr/share/java/netty-{part}.jar" for part in ("buffer", "common", "resolver", "transport"))
    for title, name, path in (("NIO, a selector", "EchoNio", None), ("Netty", "EchoNetty", jars)):
        with over_streams(report, fabric, f"Java, {title}: 20 connections at once", 20 * (1 << 18)):
            program, compiler = harness.need_program("java"), harness.need_program("javac")
            if path and not os.path.exists(path.split(":", maxsplit=1)[0]):
                raise harness.Skipped("libnetty-java is not installed (packages.txt)")
            source = readable(folder, f"{name}.java")
            if not (folder / f"{name}.class").exists():
                tool(fabric, [compiler, "-Xlint:-options", *(["-cp", path] if path else []), "-d", folder, source])
            port = harness.free_port()
            words = [program, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp",
                     f"{folder}:{path}" if path else folder, name, port]
            with serving(fabric, words, port):
                run(fabric, [*words, SERVER, 20]).require("^all right: 20$")


def iperf(fabric, report, _):
    with over_streams(report, fabric, "iperf3, 8 streams, reverse", 60 << 20):
        harness.need_program("iperf3")
        port = harness.free_port()
        server = serve(fabric, ["iperf3", "-s", "-1", "-p", port, "--forceflush"], port)
        run(fabric, ["iperf3", "-c", SERVER, "-p", port, "-n", "64M", "-P", 8, "-R"]).require("iperf Done")
        fabric.end(server, SECONDS).require(rf"Accepted connection from {CLIENT}")


SSHD = """
Port {port}
ListenAddress 0.0.0.0
HostKey {folder}/host
AuthorizedKeysFile {folder}/id.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
Subsystem sftp internal-sftp
"""


def ssh(fabric, report, folder):
    # Its part before the login has another user and root, and may make some ten system calls only.
    with report.case("sshd, ssh and scp"):
        program = harness.need_program("sshd")
        if not is_root(folder):
            raise harness.Skipped("sshd needs an account with a shell")
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
        for name in ("host", "id"):
            tool(fabric, ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name])
        port = harness.free_port()
        config = folder / "sshd_config"
        config.write_text(SSHD.format(port=port, folder=folder))
        config.chmod(0o644)
        options = ["-F", "none", "-i", folder / "id", "-o", "StrictHostKeyChecking=no", "-o", "BatchMode=yes",
                   "-o", f"UserKnownHostsFile={folder}/known"]
        with serving(fabric, [program, "-D", "-e", "-f", config], port):
            run(fabric, ["ssh", *options, "-p", port, SERVER, "echo $SSH_CONNECTION"]).require("^127.77.0.2 ")
            run(fabric, ["scp", *options, "-P", port, data_file(folder), f"{SERVER}:{folder}/there"]).require()
            run(fabric, ["scp", "-O", *options, "-P", port, f"{SERVER}:{folder}/there", folder / "back"]).require()
            same_bytes(folder / "back", data_file(folder).read_bytes())


PARTS = (nginx, other_users, benchmarks, haproxy, apache, memcached, rsync, socat, postgres, mariadb, cluster, python, java, iperf,
         ssh)


def test(report, user):
    wanted = [part for part in PARTS if report.wanted(part.__name__)]
    if not wanted:
        return
    with harness.Fabric(nodes=2, user=user, config=harness.WITH_ADDRESSES) as fabric:
        for part in wanted:
            folder = user.make_dir("softib-programs-")
            part(fabric, report, folder)
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    harness.main("programs over streams", test)
