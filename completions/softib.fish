# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Completion of softib for fish. Written by scripts/cli_pages.py.
# The command of the line, with its action: "hca add".
function __softib_called
    set -l words (commandline -opc)
    set -l called
    set -l skip 0
    for word in $words[2..]
        if test $skip = 1
            set skip 0
            continue
        end
        switch $word
            case -f --fabric --color
                set skip 1
            case '-*'
            case '*'
                set -a called $word
                test (count $called) = 2; and break
                contains -- $called[1] port hca partition power driver; or break
        end
    end
    echo "$called"
end
function __softib_is
    test (__softib_called) = "$argv"
end
# What completes the program of `softib run`.
function __softib_program
    set -l words (commandline -opc)
    set -e words[1..2]
    while set -q words[1]
        switch $words[1]
            case --
                set -e words[1]
                break
            case -f --fabric -n --node --nodes --hcas --ports --link-layer --max-memory --config --verify-seed --path --linger
                set -e words[1]
                set -e words[1]
            case '-*'
                set -e words[1]
            case '*'
                break
        end
    end
    complete -C (string join ' ' -- (string escape -- $words) (commandline -ct))
end
complete -c softib -f
complete -c softib -n '__softib_is' -a run -d 'run a program that sees software HCAs'
complete -c softib -n '__softib_is' -a up -d 'start a fabric that stays until `softib down`'
complete -c softib -n '__softib_is' -a down -d 'end a fabric that no program uses'
complete -c softib -n '__softib_is' -a status -d 'nodes, HCAs, ports, programs, what is stuck'
complete -c softib -n '__softib_is' -a connections -d 'listeners and connections, with both ends'
complete -c softib -n '__softib_is' -a resources -d 'queue pairs, CQs, regions and channels of each program'
complete -c softib -n '__softib_is' -a list -d 'the fabrics of this user'
complete -c softib -n '__softib_is' -a wait -d 'wait until a program listens, for scripts'
complete -c softib -n '__softib_is' -a trace -d 'what went wrong or changed, line by line'
complete -c softib -n '__softib_is' -a explain -d 'errors in words, and what to do'
complete -c softib -n '__softib_is' -a port -d 'take a port down or up, as if by its cable'
complete -c softib -n '__softib_is' -a devices -d 'the device tree: states, drivers, ids'
complete -c softib -n '__softib_is' -a ls -d 'names of devices, as programs open them'
complete -c softib -n '__softib_is' -a hca -d 'plug an HCA in or out of a node'
complete -c softib -n '__softib_is' -a partition -d 'extra P_Keys of a port, with their devices'
complete -c softib -n '__softib_is' -a power -d 'sleep, wake up, shut down'
complete -c softib -n '__softib_is' -a driver -d 'drivers of the fabric'
complete -c softib -n '__softib_is' -a env -d 'the environment of `softib run`, for a shell'
complete -c softib -n '__softib_is' -a doctor -d 'what this machine can do, and what it lacks'
complete -c softib -n '__softib_is' -a version -d 'the version, and where its parts are'
complete -c softib -n '__softib_is' -a help -d '`softib help CMD` is `softib CMD --help`'
complete -c softib -n '__softib_is' -l help -s h -d 'Print this help message and exit'
complete -c softib -n '__softib_is' -l version -s V -d 'print the version and exit'
complete -c softib -n '__softib_is' -l color -xa 'auto always never' -d 'when to use colour; auto: on a terminal, unless NO_COLOR is set'
complete -c softib -n '__softib_is' -l fabric -s f -xa '(softib list 2>/dev/null | string match -r "^[^ ]+(?= +up )")' -d 'which fabric, before or after the command'
complete -c softib -n '__softib_is run' -l help -s h -d 'Print this help message and exit'
complete -c softib -n '__softib_is run' -l fabric -s f -xa '(softib list 2>/dev/null | string match -r "^[^ ]+(?= +up )")' -d 'which fabric, if you have several'
complete -c softib -n '__softib_is run' -l node -s n -x -d 'the virtual host the program runs on: number, name, or auto for the ranks of MPI'
complete -c softib -n '__softib_is run' -l nodes -x -d 'virtual hosts of the fabric: a number (node0, node1, ...) or names'
complete -c softib -n '__softib_is run' -l hcas -x -d 'HCAs of each node: softib0, softib1, ...'
complete -c softib -n '__softib_is run' -l ports -x -d 'ports of each HCA'
complete -c softib -n '__softib_is run' -l link-layer -xa 'infiniband ethernet' -d 'ports of HCAs: infiniband, or ethernet for RoCE v2'
complete -c softib -n '__softib_is run' -l max-memory -x -d 'most memory for queues and device memory of the fabric, such as 512M or 4G'
complete -c softib -n '__softib_is run' -l config -rF -d 'children of ports, partitions, link layers, addresses, cables, driver store (docs/cli.md)'
complete -c softib -n '__softib_is run' -l verify -d 'check drivers: requests and answers wait at random, what is left is reported (`softib trace`); --verify=faults: each request also fails in every way, once'
complete -c softib -n '__softib_is run' -l verify-seed -x -d 'repeats the choices of --verify'
complete -c softib -n '__softib_is run' -l path -xa 'auto adopted process_vm bounce' -d 'how bytes get into other processes; for tests and comparisons'
complete -c softib -n '__softib_is run' -l sockets -d 'TCP connections over RDMA: to all nodes, or to these addresses'
complete -c softib -n '__softib_is run' -l linger -x -d 'how long a fabric that this starts outlives its last program'
complete -c softib -n '__softib_is run' -l verbose -s v -d 'say what is done; programs say what fails'
complete -c softib -n '__softib_is up' -l help -s h -d 'Print this help message and exit'
complete -c softib -n '__softib_is up' -l fabric -s f -xa '(softib list 2>/dev/null | string match -r "^[^ ]+(?= +up )")' -d 'which fabric, if you have several'
complete -c softib -n '__softib_is up' -l nodes -x -d 'virtual hosts of the fabric: a number (node0, node1, ...) or names'
complete -c softib -n '__softib_is up' -l hcas -x -d 'HCAs of each node: softib0, softib1, ...'
complete -c softib -n '__softib_is up' -l ports -x -d 'ports of each HCA'
complete -c softib -n '__softib_is up' -l link-layer -xa 'infiniband ethernet' -d 'ports of HCAs: infiniband, or ethernet for RoCE v2'
complete -c softib -n '__softib_is up' -l max-memory -x -d 'most memory for queues and device memory of the fabric, such as 512M or 4G'
complete -c softib -n '__softib_is up' -l config -rF -d 'children of ports, partitions, link layers, addresses, cables, driver store (docs/cli.md)'
complete -c softib -n '__softib_is up' -l verify -d 'check drivers: requests and answers wait at random, what is left is reported (`softib trace`); --verify=faults: each request also fails in every way, once'
complete -c softib -n '__softib_is up' -l verify-seed -x -d 'repeats the choices of --verify'
complete -c softib -n '__softib_is down' -l help -s h -d 'Print this help message and exit'
complete -c softib -n '__softib_is down' -l fabric -s f -xa '(softib list 2>/dev/null | string match -r "^[^ ]+(?= +up )")' -d 'which fabric, if you have several'
complete -c softib -n '__softib_is down' -l all -s a -d 'all fabrics of this user'
complete -c softib -n '__softib_is down' -l force -d 'under running programs too, and softibd is killed if it does not go by itself'
complete -c softib -n '__softib_is status' -l help -s h -d 'Print this help message and exit'
complete -c softib -n '__softib_is status' -l fabric -s f -xa '(softib list 2>/dev/null | string match -r "^[^ ]+(?= +up )")' -d 'which fabric, if you have several'
complete -c softib -n '__softib_is status' -l json -d 'for programs; with --watch one object a line'
complete -c softib -n '__softib_is status' -l watch -s w -d 'again every second, until Ctrl-C or `softib down`'
complete -c softib -n '__softib_is connections' -l help -s h -d 'Print this help message and exit'
complete -c softib -n '__softib_is connections' -l fabric -s f -xa '(softib list 2>/dev/null | string match -r "^[^ ]+(?= +up )")' -d 'which fabric, if you have several'
complete -c softib -n '__softib_is connections' -l listen -s l -d 'listeners only'
complete -c softib -n '__softib_is connections' -l all -s a -d 'also ids that are idle, bound, resolved, or over and not destroyed'
complete -c softib -n '__softib_is connections' -l json -d 'for programs (docs/status_json.md); with --watch one array a line'
complete -c softib -n '__softib_is connections' -l watch -s w -d 'again every second, until Ctrl-C or `softib down`'
complete -c softib -n '__softib_is resources' -l help -s h -d 'Print this help message and exit'
complete -c softib -n '__softib_is resources' -l fabric -s f -xa '(softib list 2>/dev/null | string match -r "^[^ ]+(?= +up )")' -d 'which fabric, if you have several'
complete -c softib -n '__softib_is resources' -l node -s n -x -d 'only programs of this node: number or name'
complete -c softib -n '__softib_is resources' -l all -s a -d 'all regions, and the objects of softibd itself'
complete -c softib -n '__softib_is resources' -l json -d 'for programs (docs/status_json.md); with --watch one array a line'
complete -c softib -n '__softib_is resources' -l watch -s w -d 'again every second, until Ctrl-C or `softib down`'
complete -c softib -n '__softib_is list' -l help -s h -d 'Print this help message and exit'
complete -c softib -n '__softib_is list' -l json -d 'for programs'
complete -c softib -n '__softib_is wait' -l help -s h -d 'Print this help message and exit'
complete -c softib -n '__softib_is wait' -l fabric -s f -xa '(softib list 2>/dev/null | string match -r "^[^ ]+(?= +up )")' -d 'which fabric, if you have several'
complete -c softib -n '__softib_is wait' -l listen -s l -x -d 'a port of librdmacm, or the TCP port of a server'
complete -c softib -n '__softib_is wait' -l node -s n -x -d 'on this node only: number or name'
complete -c softib -n '__softib_is wait' -l timeout -s t -x -d 'how long'
complete -c softib -n '__softib_is wait' -l verbose -s v -d 'say which program it is'
complete -c softib -n '__softib_is trace' -l help -s h -d 'Print this help message and exit'
complete -c softib -n '__softib_is trace' -l fabric -xa '(softib list 2>/dev/null | string match -r "^[^ ]+(?= +up )")' -d 'which fabric, if you have several'
complete -c softib -n '__softib_is trace' -l lines -s l -s n -x -d 'only the last N lines; 0: all there are'
complete -c softib -n '__softib_is trace' -l follow -s f -s F -d 'stay and show new lines, until Ctrl-C or `softib down`'
complete -c softib -n '__softib_is trace' -l all -d 'the steps of devices and power too'
complete -c softib -n '__softib_is trace' -l json -d 'for programs: one object a line (docs/status_json.md)'
complete -c softib -n '__softib_is explain' -l help -s h -d 'Print this help message and exit'
complete -c softib -n '__softib_is explain' -l fabric -s f -xa '(softib list 2>/dev/null | string match -r "^[^ ]+(?= +up )")' -d 'which fabric, if you have several'
complete -c softib -n '__softib_is explain' -l all -d 'all that can be explained'
complete -c softib -n '__softib_is port' -a down -d 'no link: programs get a port error event, data stops'
complete -c softib -n '__softib_is port' -a up -d 'link again: programs get a port active event'
complete -c softib -n '__softib_is port' -l help -s h -d 'Print this help message and exit'
complete -c softib -n '__softib_is port down' -l help -s h -d 'Print this help message and exit'
complete -c softib -n '__softib_is port down' -l fabric -s f -xa '(softib list 2>/dev/null | string match -r "^[^ ]+(?= +up )")' -d 'which fabric, if you have several'
complete -c softib -n '__softib_is port down' -l node -s n -x -d 'the node: number or name'
complete -c softib -n '__softib_is port down' -l ca -x -d 'the HCA'
complete -c softib -n '__softib_is port down' -l port -x -d 'the port'
complete -c softib -n '__softib_is port up' -l help -s h -d 'Print this help message and exit'
complete -c softib -n '__softib_is port up' -l fabric -s f -xa '(softib list 2>/dev/null | string match -r "^[^ ]+(?= +up )")' -d 'which fabric, if you have several'
complete -c softib -n '__softib_is port up' -l node -s n -x -d 'the node: number or name'
complete -c softib -n '__softib_is port up' -l ca -x -d 'the HCA'
complete -c softib -n '__softib_is port up' -l port -x -d 'the port'
complete -c softib -n '__softib_is devices' -l help -s h -d 'Print this help message and exit'
complete -c softib -n '__softib_is devices' -l fabric -s f -xa '(softib list 2>/dev/null | string match -r "^[^ ]+(?= +up )")' -d 'which fabric, if you have several'
complete -c softib -n '__softib_is devices' -l json -d 'for programs'
complete -c softib -n '__softib_is devices' -l ids -d 'with description, hardware and compatible ids'
complete -c softib -n '__softib_is ls' -l help -s h -d 'Print this help message and exit'
complete -c softib -n '__softib_is ls' -l fabric -s f -xa '(softib list 2>/dev/null | string match -r "^[^ ]+(?= +up )")' -d 'which fabric, if you have several'
complete -c softib -n '__softib_is ls' -l node -s n -x -d 'the node: number or name'
complete -c softib -n '__softib_is ls' -l json -d 'for programs'
complete -c softib -n '__softib_is hca' -a add -d 'the one named, else one that is out, else a new one'
complete -c softib -n '__softib_is hca' -a remove -d 'safely: programs that use it have a veto (exit code 10)'
complete -c softib -n '__softib_is hca' -a eject -d 'pull it out: programs get device fatal, their work flushes'
complete -c softib -n '__softib_is hca' -l help -s h -d 'Print this help message and exit'
complete -c softib -n '__softib_is hca add' -l help -s h -d 'Print this help message and exit'
complete -c softib -n '__softib_is hca add' -l fabric -s f -xa '(softib list 2>/dev/null | string match -r "^[^ ]+(?= +up )")' -d 'which fabric, if you have several'
complete -c softib -n '__softib_is hca add' -l node -s n -x -d 'the node: number or name'
complete -c softib -n '__softib_is hca remove' -l help -s h -d 'Print this help message and exit'
complete -c softib -n '__softib_is hca remove' -l fabric -s f -xa '(softib list 2>/dev/null | string match -r "^[^ ]+(?= +up )")' -d 'which fabric, if you have several'
complete -c softib -n '__softib_is hca remove' -l node -s n -x -d 'the node: number or name'
complete -c softib -n '__softib_is hca eject' -l help -s h -d 'Print this help message and exit'
complete -c softib -n '__softib_is hca eject' -l fabric -s f -xa '(softib list 2>/dev/null | string match -r "^[^ ]+(?= +up )")' -d 'which fabric, if you have several'
complete -c softib -n '__softib_is hca eject' -l node -s n -x -d 'the node: number or name'
complete -c softib -n '__softib_is partition' -a add -d 'programs get a P_Key change event'
complete -c softib -n '__softib_is partition' -a remove -d 'not while queue pairs use it (exit code 10)'
complete -c softib -n '__softib_is partition' -l help -s h -d 'Print this help message and exit'
complete -c softib -n '__softib_is partition add' -l help -s h -d 'Print this help message and exit'
complete -c softib -n '__softib_is partition add' -l fabric -s f -xa '(softib list 2>/dev/null | string match -r "^[^ ]+(?= +up )")' -d 'which fabric, if you have several'
complete -c softib -n '__softib_is partition add' -l name -x -d 'of its device: i... IPoIB, e... Ethernet'
complete -c softib -n '__softib_is partition add' -l node -s n -x -d 'the node: number or name'
complete -c softib -n '__softib_is partition add' -l ca -x -d 'the HCA'
complete -c softib -n '__softib_is partition add' -l port -x -d 'the port'
complete -c softib -n '__softib_is partition remove' -l help -s h -d 'Print this help message and exit'
complete -c softib -n '__softib_is partition remove' -l fabric -s f -xa '(softib list 2>/dev/null | string match -r "^[^ ]+(?= +up )")' -d 'which fabric, if you have several'
complete -c softib -n '__softib_is partition remove' -l node -s n -x -d 'the node: number or name'
complete -c softib -n '__softib_is partition remove' -l ca -x -d 'the HCA'
complete -c softib -n '__softib_is partition remove' -l port -x -d 'the port'
complete -c softib -n '__softib_is power' -a sleep -d 'HCAs are off; requests wait, queue pairs survive'
complete -c softib -n '__softib_is power' -a hibernate -d 'the same, as far as programs can tell'
complete -c softib -n '__softib_is power' -a resume -d 'what waited goes on'
complete -c softib -n '__softib_is power' -a shutdown -d 'devices go down in order, then softibd ends'
complete -c softib -n '__softib_is power' -l help -s h -d 'Print this help message and exit'
complete -c softib -n '__softib_is power sleep' -l help -s h -d 'Print this help message and exit'
complete -c softib -n '__softib_is power sleep' -l fabric -s f -xa '(softib list 2>/dev/null | string match -r "^[^ ]+(?= +up )")' -d 'which fabric, if you have several'
complete -c softib -n '__softib_is power sleep' -l node -s n -x -d 'one node: number or name'
complete -c softib -n '__softib_is power hibernate' -l help -s h -d 'Print this help message and exit'
complete -c softib -n '__softib_is power hibernate' -l fabric -s f -xa '(softib list 2>/dev/null | string match -r "^[^ ]+(?= +up )")' -d 'which fabric, if you have several'
complete -c softib -n '__softib_is power hibernate' -l node -s n -x -d 'one node: number or name'
complete -c softib -n '__softib_is power resume' -l help -s h -d 'Print this help message and exit'
complete -c softib -n '__softib_is power resume' -l fabric -s f -xa '(softib list 2>/dev/null | string match -r "^[^ ]+(?= +up )")' -d 'which fabric, if you have several'
complete -c softib -n '__softib_is power resume' -l node -s n -x -d 'one node: number or name'
complete -c softib -n '__softib_is power shutdown' -l help -s h -d 'Print this help message and exit'
complete -c softib -n '__softib_is power shutdown' -l fabric -s f -xa '(softib list 2>/dev/null | string match -r "^[^ ]+(?= +up )")' -d 'which fabric, if you have several'
complete -c softib -n '__softib_is driver' -a list -d 'all, with what holds those that are loaded'
complete -c softib -n '__softib_is driver' -a load -d 'with all it depends on; devices without a driver get it'
complete -c softib -n '__softib_is driver' -a unload -d 'its devices first; their users have a veto (exit code 10)'
complete -c softib -n '__softib_is driver' -l help -s h -d 'Print this help message and exit'
complete -c softib -n '__softib_is driver list' -l help -s h -d 'Print this help message and exit'
complete -c softib -n '__softib_is driver list' -l fabric -s f -xa '(softib list 2>/dev/null | string match -r "^[^ ]+(?= +up )")' -d 'which fabric, if you have several'
complete -c softib -n '__softib_is driver list' -l json -d 'for programs'
complete -c softib -n '__softib_is driver load' -l help -s h -d 'Print this help message and exit'
complete -c softib -n '__softib_is driver load' -l fabric -s f -xa '(softib list 2>/dev/null | string match -r "^[^ ]+(?= +up )")' -d 'which fabric, if you have several'
complete -c softib -n '__softib_is driver unload' -l help -s h -d 'Print this help message and exit'
complete -c softib -n '__softib_is driver unload' -l fabric -s f -xa '(softib list 2>/dev/null | string match -r "^[^ ]+(?= +up )")' -d 'which fabric, if you have several'
complete -c softib -n '__softib_is env' -l help -s h -d 'Print this help message and exit'
complete -c softib -n '__softib_is env' -l fabric -s f -xa '(softib list 2>/dev/null | string match -r "^[^ ]+(?= +up )")' -d 'which fabric, if you have several'
complete -c softib -n '__softib_is env' -l node -s n -x -d 'the virtual host: number or name'
complete -c softib -n '__softib_is env' -l path -xa 'auto adopted process_vm bounce' -d 'as in `softib run`'
complete -c softib -n '__softib_is doctor' -l help -s h -d 'Print this help message and exit'
complete -c softib -n '__softib_is doctor' -l json -d 'for programs'
complete -c softib -n '__softib_is version' -l help -s h -d 'Print this help message and exit'
complete -c softib -n '__softib_is run' -a '(__softib_program)'
