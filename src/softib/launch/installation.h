// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The places of softib's own files: beside the running binary, in a build tree as well as under an
// installation prefix.
#pragma once

#include <string>
#include <vector>

namespace ib::softib {

inline constexpr const char* kPreloadName = "libsoftib_preload.so";
inline constexpr const char* kSocketsName = "libsoftib_sockets.so";
inline constexpr const char* kProviderStem = "libsoftib";
// libibverbs appends "-rdmav<private ABI>.so" to a driver's name that is a path.
std::string provider_name(int private_abi);

struct Installation {
  std::string bin_dir;
  std::string lib_dir;  // empty: not found
  std::vector<std::string> searched;

  std::string daemon() const { return bin_dir + "/softibd"; }
  std::string preload() const { return lib_dir + "/" + kPreloadName; }
  std::string sockets() const { return lib_dir + "/" + kSocketsName; }
  std::string provider() const { return lib_dir + "/" + kProviderStem; }
};

// Changes nothing; `bin_dir` empty: that of the running binary.
Installation find_installation(std::string bin_dir = {});

// Throw CliError(Installation) that names what is missing and where it was looked for.
void require_daemon(const Installation& installation);
void require_libraries(const Installation& installation);

}  // namespace ib::softib
