# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Completion of softib for bash. Written by scripts/cli_pages.py.
_softib() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} i word called= over= skip= words=
  # Bash makes three words of --fabric=NAME.
  if [[ $cur == = ]]; then cur=; elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    [[ $word == = ]] && { skip=1; continue; }
    if [[ $skip ]]; then skip=; continue; fi
    if [[ $called == run && $word != -* ]]; then over=$i; break; fi
    case "$called $word" in
      'run --') over=$((i + 1)); break ;;
      ' --color'|' -f'|' --fabric'|'run -f'|'run --fabric'|'run -n'|'run --node'|'run --nodes'|'run --hcas'|'run --ports'|'run --link-layer'|'run --topology'|'run --sm'|'run --sm-priority'|'run --lmc'|'run --routing'|'run --partitions'|'run --max-memory'|'run --config'|'run --verify-seed'|'run --path'|'run --linger'|'up -f'|'up --fabric'|'up --nodes'|'up --hcas'|'up --ports'|'up --link-layer'|'up --topology'|'up --sm'|'up --sm-priority'|'up --lmc'|'up --routing'|'up --partitions'|'up --max-memory'|'up --config'|'up --verify-seed'|'down -f'|'down --fabric'|'status -f'|'status --fabric'|'connections -f'|'connections --fabric'|'resources -f'|'resources --fabric'|'resources -n'|'resources --node'|'wait -f'|'wait --fabric'|'wait -l'|'wait --listen'|'wait -n'|'wait --node'|'wait -t'|'wait --timeout'|'trace --fabric'|'trace -l'|'trace -n'|'trace --lines'|'explain -f'|'explain --fabric'|'port down -f'|'port down --fabric'|'port down -n'|'port down --node'|'port down --ca'|'port down --port'|'port down --switch'|'port up -f'|'port up --fabric'|'port up -n'|'port up --node'|'port up --ca'|'port up --port'|'port up --switch'|'devices -f'|'devices --fabric'|'ls -f'|'ls --fabric'|'ls -n'|'ls --node'|'hca add -f'|'hca add --fabric'|'hca add -n'|'hca add --node'|'hca remove -f'|'hca remove --fabric'|'hca remove -n'|'hca remove --node'|'hca eject -f'|'hca eject --fabric'|'hca eject -n'|'hca eject --node'|'partition add -f'|'partition add --fabric'|'partition add --name'|'partition add -n'|'partition add --node'|'partition add --ca'|'partition add --port'|'partition remove -f'|'partition remove --fabric'|'partition remove -n'|'partition remove --node'|'partition remove --ca'|'partition remove --port'|'topology -f'|'topology --fabric'|'topology --ibnetdiscover'|'topology --ibsim'|'topology --toml'|'topology -o'|'topology --output'|'topology --from'|'topology --to'|'cable add -f'|'cable add --fabric'|'cable add --width'|'cable add --speed'|'cable remove -f'|'cable remove --fabric'|'cable down -f'|'cable down --fabric'|'cable up -f'|'cable up --fabric'|'cable show -f'|'cable show --fabric'|'cable errors -f'|'cable errors --fabric'|'cable errors --symbol'|'cable errors --recover'|'cable errors --downed'|'cable errors --physical'|'cable errors --overrun'|'cable errors --watchdog'|'cable errors --remote'|'cable errors --discards'|'switch add -f'|'switch add --fabric'|'switch add --ports'|'switch add --guid'|'switch remove -f'|'switch remove --fabric'|'switch down -f'|'switch down --fabric'|'switch up -f'|'switch up --fabric'|'path -f'|'path --fabric'|'counters -f'|'counters --fabric'|'sm status -f'|'sm status --fabric'|'sm sweep -f'|'sm sweep --fabric'|'sm sweep --timeout'|'sm priority -f'|'sm priority --fabric'|'ipoib show -f'|'ipoib show --fabric'|'ipoib attach -f'|'ipoib attach --fabric'|'ipoib attach -n'|'ipoib attach --node'|'ipoib attach --netns'|'ipoib attach --mode'|'ipoib detach -f'|'ipoib detach --fabric'|'ipoib detach -n'|'ipoib detach --node'|'power sleep -f'|'power sleep --fabric'|'power sleep -n'|'power sleep --node'|'power hibernate -f'|'power hibernate --fabric'|'power hibernate -n'|'power hibernate --node'|'power resume -f'|'power resume --fabric'|'power resume -n'|'power resume --node'|'power shutdown -f'|'power shutdown --fabric'|'driver list -f'|'driver list --fabric'|'driver load -f'|'driver load --fabric'|'driver unload -f'|'driver unload --fabric'|'env -f'|'env --fabric'|'env -n'|'env --node'|'env --path'|'doctor -f'|'doctor --fabric') skip=1 ;;
      *' -'*) ;;
      ' '*) called=$word ;;
      *) case $called in
           port|hca|partition|cable|switch|sm|ipoib|power|driver) called="$called $word" ;;
         esac ;;
    esac
  done
  [[ $called == run && ! $over && ! $skip && $cur != -* ]] && over=$COMP_CWORD
  if [[ $over ]]; then
    if declare -F _command_offset >/dev/null; then _command_offset "$over"
    elif ((COMP_CWORD == over)); then COMPREPLY=($(compgen -c -f -- "$cur"))
    else COMPREPLY=($(compgen -f -- "$cur")); fi
    return
  fi
  case "$called $prev" in
    ' -f'|' --fabric'|'run -f'|'run --fabric'|'up -f'|'up --fabric'|'down -f'|'down --fabric'|'status -f'|'status --fabric'|'connections -f'|'connections --fabric'|'resources -f'|'resources --fabric'|'wait -f'|'wait --fabric'|'trace --fabric'|'explain -f'|'explain --fabric'|'port down -f'|'port down --fabric'|'port up -f'|'port up --fabric'|'devices -f'|'devices --fabric'|'ls -f'|'ls --fabric'|'hca add -f'|'hca add --fabric'|'hca remove -f'|'hca remove --fabric'|'hca eject -f'|'hca eject --fabric'|'partition add -f'|'partition add --fabric'|'partition remove -f'|'partition remove --fabric'|'topology -f'|'topology --fabric'|'cable add -f'|'cable add --fabric'|'cable remove -f'|'cable remove --fabric'|'cable down -f'|'cable down --fabric'|'cable up -f'|'cable up --fabric'|'cable show -f'|'cable show --fabric'|'cable errors -f'|'cable errors --fabric'|'switch add -f'|'switch add --fabric'|'switch remove -f'|'switch remove --fabric'|'switch down -f'|'switch down --fabric'|'switch up -f'|'switch up --fabric'|'path -f'|'path --fabric'|'counters -f'|'counters --fabric'|'sm status -f'|'sm status --fabric'|'sm sweep -f'|'sm sweep --fabric'|'sm priority -f'|'sm priority --fabric'|'ipoib show -f'|'ipoib show --fabric'|'ipoib attach -f'|'ipoib attach --fabric'|'ipoib detach -f'|'ipoib detach --fabric'|'power sleep -f'|'power sleep --fabric'|'power hibernate -f'|'power hibernate --fabric'|'power resume -f'|'power resume --fabric'|'power shutdown -f'|'power shutdown --fabric'|'driver list -f'|'driver list --fabric'|'driver load -f'|'driver load --fabric'|'driver unload -f'|'driver unload --fabric'|'env -f'|'env --fabric'|'doctor -f'|'doctor --fabric') COMPREPLY=($(compgen -W "$(softib list 2>/dev/null | awk '$2 == "up" {print $1}')" -- "$cur")); return ;;
    *' --config') COMPREPLY=($(compgen -f -- "$cur")); return ;;
    *' --path') COMPREPLY=($(compgen -W "auto adopted process_vm bounce" -- "$cur")); return ;;
    *' --verify') COMPREPLY=($(compgen -W "on faults" -- "$cur")); return ;;
    *' --link-layer') COMPREPLY=($(compgen -W "infiniband ethernet" -- "$cur")); return ;;
    *' --sm') COMPREPLY=($(compgen -W "softib direct none opensm" -- "$cur")); return ;;
    *' --routing') COMPREPLY=($(compgen -W "automatic min-hop up/down fat-tree torus" -- "$cur")); return ;;
    *' --color') COMPREPLY=($(compgen -W "auto always never" -- "$cur")); return ;;
    *' --net') COMPREPLY=($(compgen -W "datagram connected" -- "$cur")); return ;;
    *' --mode') COMPREPLY=($(compgen -W "datagram connected" -- "$cur")); return ;;
    ' --color'|' -f'|' --fabric'|'run -f'|'run --fabric'|'run -n'|'run --node'|'run --nodes'|'run --hcas'|'run --ports'|'run --link-layer'|'run --topology'|'run --sm'|'run --sm-priority'|'run --lmc'|'run --routing'|'run --partitions'|'run --max-memory'|'run --config'|'run --verify-seed'|'run --path'|'run --linger'|'up -f'|'up --fabric'|'up --nodes'|'up --hcas'|'up --ports'|'up --link-layer'|'up --topology'|'up --sm'|'up --sm-priority'|'up --lmc'|'up --routing'|'up --partitions'|'up --max-memory'|'up --config'|'up --verify-seed'|'down -f'|'down --fabric'|'status -f'|'status --fabric'|'connections -f'|'connections --fabric'|'resources -f'|'resources --fabric'|'resources -n'|'resources --node'|'wait -f'|'wait --fabric'|'wait -l'|'wait --listen'|'wait -n'|'wait --node'|'wait -t'|'wait --timeout'|'trace --fabric'|'trace -l'|'trace -n'|'trace --lines'|'explain -f'|'explain --fabric'|'port down -f'|'port down --fabric'|'port down -n'|'port down --node'|'port down --ca'|'port down --port'|'port down --switch'|'port up -f'|'port up --fabric'|'port up -n'|'port up --node'|'port up --ca'|'port up --port'|'port up --switch'|'devices -f'|'devices --fabric'|'ls -f'|'ls --fabric'|'ls -n'|'ls --node'|'hca add -f'|'hca add --fabric'|'hca add -n'|'hca add --node'|'hca remove -f'|'hca remove --fabric'|'hca remove -n'|'hca remove --node'|'hca eject -f'|'hca eject --fabric'|'hca eject -n'|'hca eject --node'|'partition add -f'|'partition add --fabric'|'partition add --name'|'partition add -n'|'partition add --node'|'partition add --ca'|'partition add --port'|'partition remove -f'|'partition remove --fabric'|'partition remove -n'|'partition remove --node'|'partition remove --ca'|'partition remove --port'|'topology -f'|'topology --fabric'|'topology --ibnetdiscover'|'topology --ibsim'|'topology --toml'|'topology -o'|'topology --output'|'topology --from'|'topology --to'|'cable add -f'|'cable add --fabric'|'cable add --width'|'cable add --speed'|'cable remove -f'|'cable remove --fabric'|'cable down -f'|'cable down --fabric'|'cable up -f'|'cable up --fabric'|'cable show -f'|'cable show --fabric'|'cable errors -f'|'cable errors --fabric'|'cable errors --symbol'|'cable errors --recover'|'cable errors --downed'|'cable errors --physical'|'cable errors --overrun'|'cable errors --watchdog'|'cable errors --remote'|'cable errors --discards'|'switch add -f'|'switch add --fabric'|'switch add --ports'|'switch add --guid'|'switch remove -f'|'switch remove --fabric'|'switch down -f'|'switch down --fabric'|'switch up -f'|'switch up --fabric'|'path -f'|'path --fabric'|'counters -f'|'counters --fabric'|'sm status -f'|'sm status --fabric'|'sm sweep -f'|'sm sweep --fabric'|'sm sweep --timeout'|'sm priority -f'|'sm priority --fabric'|'ipoib show -f'|'ipoib show --fabric'|'ipoib attach -f'|'ipoib attach --fabric'|'ipoib attach -n'|'ipoib attach --node'|'ipoib attach --netns'|'ipoib attach --mode'|'ipoib detach -f'|'ipoib detach --fabric'|'ipoib detach -n'|'ipoib detach --node'|'power sleep -f'|'power sleep --fabric'|'power sleep -n'|'power sleep --node'|'power hibernate -f'|'power hibernate --fabric'|'power hibernate -n'|'power hibernate --node'|'power resume -f'|'power resume --fabric'|'power resume -n'|'power resume --node'|'power shutdown -f'|'power shutdown --fabric'|'driver list -f'|'driver list --fabric'|'driver load -f'|'driver load --fabric'|'driver unload -f'|'driver unload --fabric'|'env -f'|'env --fabric'|'env -n'|'env --node'|'env --path'|'doctor -f'|'doctor --fabric') return ;;
  esac
  case "$called" in
    '') words='run up down status connections resources list wait trace explain port devices ls hca partition topology cable switch path counters sm ipoib power driver env doctor version help -h --help -V --version --color -f --fabric' ;;
    'run') words='-h --help -f --fabric -n --node --nodes --hcas --ports --link-layer --topology --sm --sm-priority --lmc --routing --partitions --max-memory --config --verify --verify-seed --path --net --sockets --linger -v --verbose' ;;
    'up') words='-h --help -f --fabric --nodes --hcas --ports --link-layer --topology --sm --sm-priority --lmc --routing --partitions --max-memory --config --verify --verify-seed' ;;
    'down') words='-h --help -f --fabric -a --all --force' ;;
    'status') words='-h --help -f --fabric --json -w --watch' ;;
    'connections') words='-h --help -f --fabric -l --listen -a --all --json -w --watch' ;;
    'resources') words='-h --help -f --fabric -n --node -a --all --json -w --watch' ;;
    'list') words='-h --help --json' ;;
    'wait') words='-h --help -f --fabric -l --listen -n --node -t --timeout -v --verbose' ;;
    'trace') words='-h --help --fabric -l -n --lines -f -F --follow --all --json' ;;
    'port') words='down up -h --help' ;;
    'port down') words='-h --help -f --fabric -n --node --ca --port --switch' ;;
    'port up') words='-h --help -f --fabric -n --node --ca --port --switch' ;;
    'devices') words='-h --help -f --fabric --json --ids' ;;
    'ls') words='-h --help -f --fabric -n --node --json' ;;
    'hca') words='add remove eject -h --help' ;;
    'hca add') words='-h --help -f --fabric -n --node' ;;
    'hca remove') words='-h --help -f --fabric -n --node' ;;
    'hca eject') words='-h --help -f --fabric -n --node' ;;
    'partition') words='add remove -h --help' ;;
    'partition add') words='-h --help -f --fabric --name -n --node --ca --port' ;;
    'partition remove') words='-h --help -f --fabric -n --node --ca --port' ;;
    'topology') words='-h --help -f --fabric --json --table --ibnetdiscover --ibsim --toml -o --output --from --to --serve' ;;
    'cable') words='add remove down up show errors -h --help' ;;
    'cable add') words='-h --help -f --fabric --json --width --speed' ;;
    'cable remove') words='-h --help -f --fabric --json' ;;
    'cable down') words='-h --help -f --fabric --json' ;;
    'cable up') words='-h --help -f --fabric --json' ;;
    'cable show') words='-h --help -f --fabric --json' ;;
    'cable errors') words='-h --help -f --fabric --symbol --recover --downed --physical --overrun --watchdog --remote --discards' ;;
    'switch') words='add remove down up -h --help' ;;
    'switch add') words='-h --help -f --fabric --json --ports --guid' ;;
    'switch remove') words='-h --help -f --fabric --json' ;;
    'switch down') words='-h --help -f --fabric --json' ;;
    'switch up') words='-h --help -f --fabric --json' ;;
    'path') words='-h --help -f --fabric --json' ;;
    'counters') words='-h --help -f --fabric --watch --all --json' ;;
    'sm') words='status sweep priority -h --help' ;;
    'sm status') words='-h --help -f --fabric --json' ;;
    'sm sweep') words='-h --help -f --fabric --json --full --timeout' ;;
    'sm priority') words='-h --help -f --fabric --json' ;;
    'ipoib') words='show attach detach -h --help' ;;
    'ipoib show') words='-h --help -f --fabric -a --all --json' ;;
    'ipoib attach') words='-h --help -f --fabric -n --node --netns --mode' ;;
    'ipoib detach') words='-h --help -f --fabric -n --node' ;;
    'power') words='sleep hibernate resume shutdown -h --help' ;;
    'power sleep') words='-h --help -f --fabric -n --node' ;;
    'power hibernate') words='-h --help -f --fabric -n --node' ;;
    'power resume') words='-h --help -f --fabric -n --node' ;;
    'power shutdown') words='-h --help -f --fabric' ;;
    'driver') words='list load unload -h --help' ;;
    'driver list') words='-h --help -f --fabric --json' ;;
    'driver load') words='-h --help -f --fabric' ;;
    'driver unload') words='-h --help -f --fabric' ;;
    'env') words='-h --help -f --fabric -n --node --path' ;;
    'doctor') words='-h --help --json --subnet -f --fabric' ;;
    'version') words='-h --help' ;;
    explain*) words="-h --help -f --fabric --all $(softib explain --all 2>/dev/null | awk '/^ / && NF == 2 && $2 != "-" {print $2}')" ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -F _softib softib
