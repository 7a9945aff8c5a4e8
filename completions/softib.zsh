#compdef softib
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Completion of softib for zsh. Written by scripts/cli_pages.py.

_softib_fabrics() { compadd -- ${(f)"$(softib list 2>/dev/null | awk '$2 == "up" {print $1}')"} }

# Of the words behind the command $1, as if it were the first.
_softib_arguments() {
  case $1 in
    '')
      if (( CURRENT == 2 )) && [[ $PREFIX != -* ]]; then
        local -a actions=('run:run a program that sees software HCAs' 'up:start a fabric that stays until `softib down`' 'down:end a fabric that no program uses' 'status:nodes, HCAs, ports, programs, what is stuck' 'connections:listeners and connections, with both ends' 'resources:queue pairs, CQs, regions and channels of each program' 'list:the fabrics of this user' 'wait:wait until a program listens, for scripts' 'trace:what went wrong or changed, line by line' 'explain:errors in words, and what to do' 'port:take a port down or up, as if by its cable' 'devices:the device tree: states, drivers, ids' 'ls:names of devices, as programs open them' 'hca:plug an HCA in or out of a node' 'partition:extra P_Keys of a port, with their devices' 'topology:switches, adapters and cables of the subnet' 'cable:cables of the subnet, while it is in use' 'switch:switches of the subnet, while it is in use' 'path:the way between two ports by the tables of the switches' 'counters:what the ports of the subnet have carried, and their errors' 'sm:softib'\''s own subnet manager' 'ipoib:network interfaces of nodes (IP over InfiniBand)' 'power:sleep, wake up, shut down' 'driver:drivers of the fabric' 'env:the environment of `softib run`, for a shell' 'doctor:what this machine can do, and what it lacks' 'version:the version, and where its parts are' 'help:`softib help CMD` is `softib CMD --help`')
        _describe command actions; return
      fi
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-V --version)-V[print the version and exit]' \
        '(-V --version)--version[print the version and exit]' \
        '--color[when to use colour; auto  on a terminal, unless NO_COLOR is set]:auto always never:(auto always never)' \
        '(-f --fabric)-f[which fabric, before or after the command]:name:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, before or after the command]:name:_softib_fabrics' \
        '*: :_default'
      ;;
    'run')
      _arguments -S -A '-*' \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-n --node)-n[the virtual host the program runs on  number, name, or auto for the ranks of MPI]:n name auto:' \
        '(-n --node)--node[the virtual host the program runs on  number, name, or auto for the ranks of MPI]:n name auto:' \
        '--nodes[virtual hosts of the fabric  a number (node0, node1, ...) or names]:n name name:' \
        '--hcas[HCAs of each node  softib0, softib1, ...]:n:' \
        '--ports[ports of each HCA]:n:' \
        '--link-layer[ports of HCAs  infiniband, or ethernet for RoCE v2]:layer infiniband:(infiniband ethernet)' \
        '--topology[switches and cables  a preset, such as star 8 or fat-tree hcas=648,ports=36, or a file of ibnetdiscover, ibsim or ibutils, or in TOML (.toml); its channel adapters are the nodes]:preset file:' \
        '--sm[who manages subnets  softib, until a subnet manager runs as a program; direct  softib sets them up without a manager that others see; none  ports wait for one; opensm  it is started with the fabric]:who softib:(softib direct none opensm)' \
        '--sm-priority[softib'\''s subnet manager does not give way, but takes part in the election, with this priority]:n:' \
        '--lmc[each port of an HCA has 2^N LIDs]:n:' \
        '--routing[how softib'\''s subnet manager routes]:name automatic:(automatic min-hop up/down fat-tree torus)' \
        '--partitions[partitions, in the syntax of OpenSM'\''s partitions.conf; softib'\''s subnet manager writes them into ports and switches]:file:' \
        '--max-memory[most memory for queues and device memory of the fabric, such as 512M or 4G]:size:' \
        '--config[children of ports, partitions, link layers, addresses, cables, driver store (docs/cli.md)]:file:_files' \
        '--verify[check drivers  requests and answers wait at random, what is left is reported (`softib trace`); --verify=faults  each request also fails in every way, once]' \
        '--verify-seed[repeats the choices of --verify]:n:' \
        '--path[how bytes get into other processes; for tests and comparisons]:auto adopted process vm bounce:(auto adopted process_vm bounce)' \
        '--net[in a network of the node  interfaces ib0, ib1 ... (IP over InfiniBand), in this mode]' \
        '--sockets[TCP connections over RDMA (SDP, or librdmacm'\''s rsockets)  to all nodes, or to these addresses]' \
        '--linger[how long a fabric that this starts outlives its last program]:seconds:' \
        '(-v --verbose)-v[say what is done; programs say what fails]' \
        '(-v --verbose)--verbose[say what is done; programs say what fails]' \
        '*:::program: _normal'
      ;;
    'up')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '--nodes[virtual hosts of the fabric  a number (node0, node1, ...) or names]:n name name:' \
        '--hcas[HCAs of each node  softib0, softib1, ...]:n:' \
        '--ports[ports of each HCA]:n:' \
        '--link-layer[ports of HCAs  infiniband, or ethernet for RoCE v2]:layer infiniband:(infiniband ethernet)' \
        '--topology[switches and cables  a preset, such as star 8 or fat-tree hcas=648,ports=36, or a file of ibnetdiscover, ibsim or ibutils, or in TOML (.toml); its channel adapters are the nodes]:preset file:' \
        '--sm[who manages subnets  softib, until a subnet manager runs as a program; direct  softib sets them up without a manager that others see; none  ports wait for one; opensm  it is started with the fabric]:who softib:(softib direct none opensm)' \
        '--sm-priority[softib'\''s subnet manager does not give way, but takes part in the election, with this priority]:n:' \
        '--lmc[each port of an HCA has 2^N LIDs]:n:' \
        '--routing[how softib'\''s subnet manager routes]:name automatic:(automatic min-hop up/down fat-tree torus)' \
        '--partitions[partitions, in the syntax of OpenSM'\''s partitions.conf; softib'\''s subnet manager writes them into ports and switches]:file:' \
        '--max-memory[most memory for queues and device memory of the fabric, such as 512M or 4G]:size:' \
        '--config[children of ports, partitions, link layers, addresses, cables, driver store (docs/cli.md)]:file:_files' \
        '--verify[check drivers  requests and answers wait at random, what is left is reported (`softib trace`); --verify=faults  each request also fails in every way, once]' \
        '--verify-seed[repeats the choices of --verify]:n:' \
        '*: :_default'
      ;;
    'down')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-a --all)-a[all fabrics of this user]' \
        '(-a --all)--all[all fabrics of this user]' \
        '--force[under running programs too, and softibd is killed if it does not go by itself]' \
        '*: :_default'
      ;;
    'status')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '--json[for programs; with --watch one object a line]' \
        '(-w --watch)-w[again every second, until Ctrl-C or `softib down`]' \
        '(-w --watch)--watch[again every second, until Ctrl-C or `softib down`]' \
        '*: :_default'
      ;;
    'connections')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-l --listen)-l[listeners only]' \
        '(-l --listen)--listen[listeners only]' \
        '(-a --all)-a[also ids that are idle, bound, resolved, or over and not destroyed]' \
        '(-a --all)--all[also ids that are idle, bound, resolved, or over and not destroyed]' \
        '--json[for programs (docs/status_json.md); with --watch one array a line]' \
        '(-w --watch)-w[again every second, until Ctrl-C or `softib down`]' \
        '(-w --watch)--watch[again every second, until Ctrl-C or `softib down`]' \
        '*: :_default'
      ;;
    'resources')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-n --node)-n[only programs of this node  number or name]:n name:' \
        '(-n --node)--node[only programs of this node  number or name]:n name:' \
        '(-a --all)-a[all regions, and the objects of softibd itself]' \
        '(-a --all)--all[all regions, and the objects of softibd itself]' \
        '--json[for programs (docs/status_json.md); with --watch one array a line]' \
        '(-w --watch)-w[again every second, until Ctrl-C or `softib down`]' \
        '(-w --watch)--watch[again every second, until Ctrl-C or `softib down`]' \
        '*: :_default'
      ;;
    'list')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '--json[for programs]' \
        '*: :_default'
      ;;
    'wait')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-l --listen)-l[a port of librdmacm, or the TCP port of a server]:port:' \
        '(-l --listen)--listen[a port of librdmacm, or the TCP port of a server]:port:' \
        '(-n --node)-n[on this node only  number or name]:n name:' \
        '(-n --node)--node[on this node only  number or name]:n name:' \
        '(-t --timeout)-t[how long]:seconds:' \
        '(-t --timeout)--timeout[how long]:seconds:' \
        '(-v --verbose)-v[say which program it is]' \
        '(-v --verbose)--verbose[say which program it is]' \
        '*: :_default'
      ;;
    'trace')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-l -n --lines)-l[only the last N lines; 0  all there are]:n:' \
        '(-l -n --lines)-n[only the last N lines; 0  all there are]:n:' \
        '(-l -n --lines)--lines[only the last N lines; 0  all there are]:n:' \
        '(-f -F --follow)-f[stay and show new lines, until Ctrl-C or `softib down`]' \
        '(-f -F --follow)-F[stay and show new lines, until Ctrl-C or `softib down`]' \
        '(-f -F --follow)--follow[stay and show new lines, until Ctrl-C or `softib down`]' \
        '--all[the steps of devices and power too]' \
        '--json[for programs  one object a line (docs/status_json.md)]' \
        '*: :_default'
      ;;
    'explain')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '--all[all that can be explained]' \
        '*: :_default'
      ;;
    'port')
      if (( CURRENT == 2 )) && [[ $PREFIX != -* ]]; then
        local -a actions=('down:no link: programs get a port error event, data stops' 'up:link again: programs get a port active event')
        _describe command actions; return
      fi
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '*: :_default'
      ;;
    'port down')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-n --node)-n[the node  number or name]:n name:' \
        '(-n --node)--node[the node  number or name]:n name:' \
        '--ca[the HCA]:name softib:' \
        '--port[the port]:n:' \
        '--switch[a port of this switch instead  name or GUID]:name:' \
        '*: :_default'
      ;;
    'port up')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-n --node)-n[the node  number or name]:n name:' \
        '(-n --node)--node[the node  number or name]:n name:' \
        '--ca[the HCA]:name softib:' \
        '--port[the port]:n:' \
        '--switch[a port of this switch instead  name or GUID]:name:' \
        '*: :_default'
      ;;
    'devices')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '--json[for programs]' \
        '--ids[with description, hardware and compatible ids]' \
        '*: :_default'
      ;;
    'ls')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-n --node)-n[the node  number or name]:n name:' \
        '(-n --node)--node[the node  number or name]:n name:' \
        '--json[for programs]' \
        '*: :_default'
      ;;
    'hca')
      if (( CURRENT == 2 )) && [[ $PREFIX != -* ]]; then
        local -a actions=('add:the one named, else one that is out, else a new one' 'remove:safely: programs that use it have a veto (exit code 10)' 'eject:pull it out: programs get device fatal, their work flushes')
        _describe command actions; return
      fi
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '*: :_default'
      ;;
    'hca add')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-n --node)-n[the node  number or name]:n name:' \
        '(-n --node)--node[the node  number or name]:n name:' \
        '*: :_default'
      ;;
    'hca remove')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-n --node)-n[the node  number or name]:n name:' \
        '(-n --node)--node[the node  number or name]:n name:' \
        '*: :_default'
      ;;
    'hca eject')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-n --node)-n[the node  number or name]:n name:' \
        '(-n --node)--node[the node  number or name]:n name:' \
        '*: :_default'
      ;;
    'partition')
      if (( CURRENT == 2 )) && [[ $PREFIX != -* ]]; then
        local -a actions=('add:programs get a P_Key change event' 'remove:not while queue pairs use it (exit code 10)')
        _describe command actions; return
      fi
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '*: :_default'
      ;;
    'partition add')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '--name[of its device  i... IPoIB, e... Ethernet]:name i p key:' \
        '(-n --node)-n[the node  number or name]:n name:' \
        '(-n --node)--node[the node  number or name]:n name:' \
        '--ca[the HCA]:name softib:' \
        '--port[the port]:n:' \
        '*: :_default'
      ;;
    'partition remove')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-n --node)-n[the node  number or name]:n name:' \
        '(-n --node)--node[the node  number or name]:n name:' \
        '--ca[the HCA]:name softib:' \
        '--port[the port]:n:' \
        '*: :_default'
      ;;
    'topology')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '--json[for programs]' \
        '--table[a line for each element instead of a tree]' \
        '--ibnetdiscover[write it as ibnetdiscover does]:file:' \
        '--ibsim[write it as ibsim reads it]:file:' \
        '--toml[write it as --topology FILE.toml takes it]:file:' \
        '(-o --output)-o[draw it  .svg, .html (to zoom, click and search), or .dot of Graphviz]:file:' \
        '(-o --output)--output[draw it  .svg, .html (to zoom, click and search), or .dot of Graphviz]:file:' \
        '--from[show the way from this port, as softib path]:node lid n:' \
        '--to[to this one]:node lid n:' \
        '--serve[a page on 127.0.0.1 that follows the fabric, until Ctrl-C; --serve=PORT]' \
        '*: :_default'
      ;;
    'cable')
      if (( CURRENT == 2 )) && [[ $PREFIX != -* ]]; then
        local -a actions=('add:plug one in between two ports' 'remove:pull one out' 'down:take the port down, the cable stays' 'up:both ends may come up again' 'show:where it leads, and its state' 'errors:errors that an end of it counts, and reports')
        _describe command actions; return
      fi
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '*: :_default'
      ;;
    'cable add')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '--json[for programs]' \
        '--width[lanes]:width x:' \
        '--speed[of a lane]:speed edr:' \
        '*: :_default'
      ;;
    'cable remove')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '--json[for programs]' \
        '*: :_default'
      ;;
    'cable down')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '--json[for programs]' \
        '*: :_default'
      ;;
    'cable up')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '--json[for programs]' \
        '*: :_default'
      ;;
    'cable show')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '--json[for programs]' \
        '*: :_default'
      ;;
    'cable errors')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '--symbol[SymbolErrorCounter]:n:' \
        '--recover[LinkErrorRecoveryCounter, at both ends]:n:' \
        '--downed[LinkDownedCounter, at both ends  the link goes and comes back]:n:' \
        '--physical[bad packets in a row  PortRcvErrors; trap 129 above the threshold LocalPhyErrors]:n:' \
        '--overrun[buffer overruns in a row  PortRcvErrors; trap 130 above the threshold OverrunErrors]:n:' \
        '--watchdog[flow control was silent for too long  trap 131]:n:' \
        '--remote[PortRcvRemotePhysicalErrors]:n:' \
        '--discards[PortXmitDiscards]:n:' \
        '*: :_default'
      ;;
    'switch')
      if (( CURRENT == 2 )) && [[ $PREFIX != -* ]]; then
        local -a actions=('add:the one removed by that name, else a new one; without a cable' 'remove:with all its cables' 'down:no power: all its links go down, its cables stay' 'up:power again; what a subnet manager has set is lost')
        _describe command actions; return
      fi
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '*: :_default'
      ;;
    'switch add')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '--json[for programs]' \
        '--ports[how many]:n:' \
        '--guid[its node GUID]:guid:' \
        '*: :_default'
      ;;
    'switch remove')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '--json[for programs]' \
        '*: :_default'
      ;;
    'switch down')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '--json[for programs]' \
        '*: :_default'
      ;;
    'switch up')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '--json[for programs]' \
        '*: :_default'
      ;;
    'path')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '--json[for programs]' \
        '*: :_default'
      ;;
    'counters')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '--watch[what comes in each second, or in as many, the busiest port first, until Ctrl-C or `softib down`]' \
        '--all[ports that have carried nothing, too]' \
        '--json[all ports, for programs; with --watch one object a line]' \
        '*: :_default'
      ;;
    'sm')
      if (( CURRENT == 2 )) && [[ $PREFIX != -* ]]; then
        local -a actions=('status:where it is, its state, what it has found' 'sweep:look at the subnet now, and wait until all that has changed is set up' 'priority:take part in the election of the master, or give way to programs')
        _describe command actions; return
      fi
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '*: :_default'
      ;;
    'sm status')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '--json[for programs]' \
        '*: :_default'
      ;;
    'sm sweep')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '--json[for programs]' \
        '--full[look at everything, also at what has not changed]' \
        '--timeout[wait for this long at most]:seconds:' \
        '*: :_default'
      ;;
    'sm priority')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '--json[for programs]' \
        '*: :_default'
      ;;
    'ipoib')
      if (( CURRENT == 2 )) && [[ $PREFIX != -* ]]; then
        local -a actions=('show:the interfaces of nodes, with their neighbours, paths and groups' 'attach:put the interfaces of a node into a network namespace; needs root' 'detach:take them out again; needs root')
        _describe command actions; return
      fi
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '*: :_default'
      ;;
    'ipoib show')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-a --all)-a[all nodes, and all rows of each table]' \
        '(-a --all)--all[all nodes, and all rows of each table]' \
        '--json[for programs (docs/status_json.md); all of it]' \
        '*: :_default'
      ;;
    'ipoib attach')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-n --node)-n[the node  number or name]:n name:' \
        '(-n --node)--node[the node  number or name]:n name:' \
        '--netns[where  a name of `ip netns`, or a process; default  where softib runs]:name pid:' \
        '--mode[of the interfaces; default  as the configuration file has it, else datagram]:datagram connected:(datagram connected)' \
        '*: :_default'
      ;;
    'ipoib detach')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-n --node)-n[the node  number or name]:n name:' \
        '(-n --node)--node[the node  number or name]:n name:' \
        '*: :_default'
      ;;
    'power')
      if (( CURRENT == 2 )) && [[ $PREFIX != -* ]]; then
        local -a actions=('sleep:HCAs are off; requests wait, queue pairs survive' 'hibernate:the same, as far as programs can tell' 'resume:what waited goes on' 'shutdown:devices go down in order, then softibd ends')
        _describe command actions; return
      fi
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '*: :_default'
      ;;
    'power sleep')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-n --node)-n[one node  number or name]:n name all:' \
        '(-n --node)--node[one node  number or name]:n name all:' \
        '*: :_default'
      ;;
    'power hibernate')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-n --node)-n[one node  number or name]:n name all:' \
        '(-n --node)--node[one node  number or name]:n name all:' \
        '*: :_default'
      ;;
    'power resume')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-n --node)-n[one node  number or name]:n name all:' \
        '(-n --node)--node[one node  number or name]:n name all:' \
        '*: :_default'
      ;;
    'power shutdown')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '*: :_default'
      ;;
    'driver')
      if (( CURRENT == 2 )) && [[ $PREFIX != -* ]]; then
        local -a actions=('list:all, with what holds those that are loaded' 'load:with all it depends on; devices without a driver get it' 'unload:its devices first; their users have a veto (exit code 10)')
        _describe command actions; return
      fi
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '*: :_default'
      ;;
    'driver list')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '--json[for programs]' \
        '*: :_default'
      ;;
    'driver load')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '*: :_default'
      ;;
    'driver unload')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '*: :_default'
      ;;
    'env')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '(-f --fabric)-f[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-f --fabric)--fabric[which fabric, if you have several]:name default:_softib_fabrics' \
        '(-n --node)-n[the virtual host  number or name]:n name:' \
        '(-n --node)--node[the virtual host  number or name]:n name:' \
        '--path[as in `softib run`]:auto adopted process vm bounce:(auto adopted process_vm bounce)' \
        '*: :_default'
      ;;
    'doctor')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '--json[for programs]' \
        '--subnet[what is wrong in the subnet of a fabric instead]' \
        '(-f --fabric)-f[of this fabric, as --subnet  default ]:name:_softib_fabrics' \
        '(-f --fabric)--fabric[of this fabric, as --subnet  default ]:name:_softib_fabrics' \
        '*: :_default'
      ;;
    'version')
      _arguments -S \
        '(-h --help)-h[Print this help message and exit]' \
        '(-h --help)--help[Print this help message and exit]' \
        '*: :_default'
      ;;
  esac
}

_softib() {
  local called=${words[2]} at=3
  if (( CURRENT == 2 )); then _softib_arguments ''; return; fi
  case $called in
    port|hca|partition|cable|switch|sm|ipoib|power|driver)
      if (( CURRENT > 3 )); then called="$called ${words[3]}"; at=4; fi ;;
  esac
  words=("softib $called" "${(@)words[at,-1]}")
  (( CURRENT -= at - 2 ))
  _softib_arguments "$called"
}

_softib "$@"
