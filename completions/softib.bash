# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Completion of softib for bash. Written by scripts/cli_pages.py.
_softib() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} i word command= action= skip= words=
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ $skip ]]; then skip=; continue; fi
    case $word in
      --) [[ $command == run ]] && { _command_offset $((i + 1)) 2>/dev/null || COMPREPLY=($(compgen -c -f -- "$cur")); return; } ;;
      --ca|--color|--config|--fabric|--hcas|--lines|--linger|--link-layer|--max-memory|--name|--node|--nodes|--path|--port|--ports|--sockets|--verify-seed|-f|-l|-n) skip=1 ;;
      -*) ;;
      *) if [[ ! $command ]]; then command=$word; elif [[ $command == run ]]; then
           _command_offset "$i" 2>/dev/null || COMPREPLY=($(compgen -f -- "$cur")); return
         elif [[ ! $action ]]; then action=$word; fi ;;
    esac
  done
  case $prev in
    -f|--fabric) COMPREPLY=($(compgen -W "$(softib list 2>/dev/null | awk '$2 == "up" {print $1}')" -- "$cur")); return ;;
    --config) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    --path) COMPREPLY=($(compgen -W "auto adopted process_vm bounce" -- "$cur")); return ;;
    --verify) COMPREPLY=($(compgen -W "on faults" -- "$cur")); return ;;
    --link-layer) COMPREPLY=($(compgen -W "infiniband ethernet" -- "$cur")); return ;;
    --color) COMPREPLY=($(compgen -W "auto always never" -- "$cur")); return ;;
  esac
  case "$command${action:+ $action}" in
    '') words='run up down status connections list trace explain port devices ls hca partition power driver env doctor version help -h --help -V --version --color' ;;
    'run') words='-h --help -f --fabric -n --node --nodes --hcas --ports --link-layer --max-memory --config --verify --verify-seed --path --sockets --linger -v --verbose' ;;
    'up') words='-h --help -f --fabric --nodes --hcas --ports --link-layer --max-memory --config --verify --verify-seed' ;;
    'down') words='-h --help -f --fabric -a --all --force' ;;
    'status') words='-h --help -f --fabric --json -w --watch' ;;
    'connections') words='-h --help -f --fabric -l --listen -a --all --json -w --watch' ;;
    'list') words='-h --help --json' ;;
    'trace') words='-h --help -f --fabric -l -n --lines -F --follow --all --json' ;;
    'port') words='down up -h --help' ;;
    'port down') words='-h --help -f --fabric -n --node --ca --port' ;;
    'port up') words='-h --help -f --fabric -n --node --ca --port' ;;
    'devices') words='-h --help -f --fabric --json --ids' ;;
    'ls') words='-h --help -f --fabric -n --node --json' ;;
    'hca') words='add remove eject -h --help' ;;
    'hca add') words='-h --help -f --fabric -n --node' ;;
    'hca remove') words='-h --help -f --fabric -n --node' ;;
    'hca eject') words='-h --help -f --fabric -n --node' ;;
    'partition') words='add remove -h --help' ;;
    'partition add') words='-h --help -f --fabric --name -n --node --ca --port' ;;
    'partition remove') words='-h --help -f --fabric -n --node --ca --port' ;;
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
    'doctor') words='-h --help --json' ;;
    'version') words='-h --help' ;;
    explain*) words="--all --fabric $(softib explain --all 2>/dev/null | awk '/^ / && NF == 2 {print $2}')" ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -F _softib softib
