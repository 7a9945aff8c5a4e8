// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The places of softib's own files: beside the running binary, in a build tree as well as under an
// installation prefix.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ib::softib {

inline constexpr const char* kPreloadName = "libsoftib_preload.so";
// The socket switch: over streams (SDP), or over librdmacm's rsockets.
inline constexpr const char* kStreamsName = "libsoftib_streams.so";
inline constexpr const char* kRsocketsName = "libsoftib_sockets.so";
inline constexpr const char* kProviderStem = "libsoftib";
// libibverbs appends "-rdmav<private ABI>.so" to a driver's name that is a path.
std::string provider_name(int private_abi);

struct Installation {
  std::string bin_dir;
  std::string lib_dir;  // empty: not found
  // The same as programs name it: if there are libraries for 32-bit programs too, with $LIB, which
  // the dynamic loader of each program replaces by the folder of its word size.
  std::string loader_dir;
  std::string lib_dir_32;  // where those are; empty: there are none
  std::vector<std::string> searched;

  std::string daemon() const { return bin_dir + "/softibd"; }
  std::string net_program() const { return bin_dir + "/softib-net"; }
  std::string preload() const { return loader_dir + "/" + kPreloadName; }
  std::string sockets(bool over_rsockets) const {
    return loader_dir + "/" + (over_rsockets ? kRsocketsName : kStreamsName);
  }
  std::string provider() const { return loader_dir + "/" + kProviderStem; }
};

// "lib64", "lib/x86_64-linux-gnu": for this machine's dynamic loader the meaning of $LIB. Empty: it
// does not say.
std::string loader_library_folder();
// The folder of 32-bit libraries beside that one, in Debian's family and in that of RPM; empty: of
// neither.
std::string folder_of_32_bit(std::string_view folder);

// Changes nothing; `bin_dir` empty: that of the running binary.
Installation find_installation(std::string bin_dir = {});

// Throw CliError(Installation) that names what is missing and where it was looked for.
void require_daemon(const Installation& installation);
void require_net_program(const Installation& installation);
void require_libraries(const Installation& installation);

}  // namespace ib::softib
