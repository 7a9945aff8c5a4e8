// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "setup/cli_error.h"
#include "setup/fd.h"
#include "setup/runtime_dir.h"
#include "softib/doctor/doctor.h"
#include "softib/launch/installation.h"
#include "verbs/private_abi.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>

namespace ib::softib {
namespace {

// The text of an error without its advice, which doctor gives in a column of its own.
std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// The file behind a loaded library, links resolved: its name ends with the version.
std::string file_of(void* library) {
  link_map* map = nullptr;
  if (::dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return "?";
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(map->l_name, error);
  return error ? map->l_name : path.filename().string();
}

// A value of /etc/os-release, without its quotes.
std::string os_release(const std::string& name) {
  const std::string text = "\n" + read_file("/etc/os-release");
  const std::size_t at = text.find("\n" + name + "=");
  if (at == std::string::npos) return {};
  const std::size_t start = at + name.size() + 2;
  std::string value = text.substr(start, text.find('\n', start) - start);
  std::erase(value, '"');
  return value;
}

void check_system(Findings& findings) {
  utsname kernel{};
  ::uname(&kernel);
  std::string name = os_release("PRETTY_NAME");
  if (name.empty()) name = "unknown (no /etc/os-release)";
  findings.push_back({"distribution", Level::Ok, name, {}, {}});
  findings.push_back({"kernel",
                      Level::Ok,
                      fmt::format("{} {} {}", kernel.sysname, kernel.release, kernel.machine),
                      {},
                      {}});
}

void check_parts(Findings& findings) {
  const Installation found = find_installation();
  Finding daemon{"softibd", Level::Ok, found.daemon(), {}, {}};
  Finding libraries{"softib libraries", Level::Ok, found.lib_dir, {}, {}};
  try {
    require_daemon(found);
  } catch (const CliError& error) {
    daemon = {"softibd", Level::Fail, first_line(error.what()), "no fabric can be started",
              "build or install softib again"};
  }
  try {
    require_libraries(found);
  } catch (const CliError& error) {
    libraries = {"softib libraries", Level::Fail, first_line(error.what()),
                 "programs do not see the HCAs", "build or install softib again"};
  }
  findings.push_back(daemon);
  findings.push_back(libraries);
}

// Loads a library in a child, since loading runs its code. Returns the words of the loader or the
// library; empty on success.
std::string complaint_of(const std::string& path) {
  std::array<int, 2> words{};
  if (::pipe(words.data()) != 0) return "no pipe to be had";
  const std::optional<int> result = in_child([&] {
    ::dup2(words[1], STDERR_FILENO);
    // The provider is a plug-in of libibverbs and checks it when it is loaded.
    ::dlopen("libibverbs.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) return 0;
    const std::string why = ::dlerror();
    return ::write(words[1], why.data(), why.size()) < 0 ? 2 : 1;
  });
  ::close(words[1]);
  std::array<char, 512> text{};
  const ssize_t length = ::read(words[0], text.data(), text.size());
  ::close(words[0]);
  if (length > 0) return first_line({text.data(), static_cast<std::size_t>(length)});
  return result == 0 ? "" : path + " crashes when it is loaded";
}

// `private_abi`: of libibverbs; 0 if softib has no plug-in for it.
void check_loads(Findings& findings, int private_abi) {
  const Installation found = find_installation();
  if (found.lib_dir.empty()) return;
  std::vector<std::string> paths{found.preload()};
  if (private_abi != 0) paths.push_back(found.lib_dir + "/" + provider_name(private_abi));
  for (const std::string& path : paths) {
    if (::access(path.c_str(), R_OK) != 0) continue;
    const std::string complaint = complaint_of(path);
    if (complaint.empty()) continue;
    findings.push_back({"softib libraries load", Level::Fail, complaint,
                        "programs do not see the HCAs", "build softib for this system"});
    return;
  }
  findings.push_back({"softib libraries load", Level::Ok, "yes", {}, {}});
}

// "rdma-core 44.0", or the name of the library's file if that does not say.
std::string release_of(const std::string& file) {
  const std::string_view release = verbs::rdma_core_release(file);
  return release.empty() ? file : fmt::format("rdma-core {}", release);
}

// Returns the private ABI if softib has a plug-in for it, else 0.
int check_verbs_library(Findings& findings) {
  void* library = ::dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const std::string why = ::dlerror();  // also: made for a newer C library
    const bool absent = why.find("cannot open shared object file") != std::string::npos;
    findings.push_back({"libibverbs", Level::Fail, absent ? "not found" : why,
                        "no verbs program can run, with softib or without",
                        "apt-get install libibverbs1 ibverbs-utils"});
    return 0;
  }
  const std::string file = file_of(library);
  const int abi = verbs::find_private_abi([&](int number) {
    return ::dlvsym(library, fmt::format("verbs_register_driver_{}", number).c_str(),
                    fmt::format("IBVERBS_PRIVATE_{}", number).c_str()) != nullptr;
  });
  ::dlclose(library);
  const std::string name = release_of(file);
  if (verbs::is_known_private_abi(abi)) {
    findings.push_back(
        {"libibverbs", Level::Ok, fmt::format("{}, private ABI {} ({})", name, abi, file), {}, {}});
    return abi;
  }
  const std::string has = abi == 0 ? "no private ABI" : fmt::format("private ABI {}", abi);
  findings.push_back({"libibverbs", Level::Fail,
                      fmt::format("{} has {}; this softib knows {} to {}", name, has,
                                  verbs::kPrivateAbis.front(), verbs::kPrivateAbis.back()),
                      "softib's provider is not loaded, so there is no HCA",
                      "use rdma-core 36 to 65, or a newer softib"});
  return 0;
}

// Of 32-bit programs; empty: there is none.
std::string libibverbs_of_32_bit() {
  const std::string folder = folder_of_32_bit(loader_library_folder());
  for (const std::string& place : {"/usr/" + folder, std::string("/usr/lib32")}) {
    std::error_code error;
    const std::filesystem::path path =
        std::filesystem::canonical(place + "/libibverbs.so.1", error);
    if (!error && !folder.empty()) return path.string();
  }
  return {};
}

void check_32_bit(Findings& findings) {
  const std::string libraries = find_installation().lib_dir_32;
  const std::string libibverbs = libibverbs_of_32_bit();
  const std::string name =
      libibverbs.empty() ? "no 32-bit libibverbs here" : release_of(libibverbs);
  Finding finding{"32-bit programs", Level::Ok, fmt::format("{}; {}", libraries, name), {}, {}};
  if (libraries.empty() && libibverbs.empty()) {
    finding.value = "no libraries for them here";
  } else if (libraries.empty()) {
    finding = {"32-bit programs", Level::Warn,
               fmt::format("{}; softib has no libraries for them here", name),
               "32-bit programs do not see the HCAs", "install softib-libs32"};
  }
  findings.push_back(finding);
}

void check_other_libraries(Findings& findings) {
  struct Library {
    const char* check;
    const char* soname;
    const char* package;
    const char* cost;
  };
  constexpr std::array kOthers = {
      Library{"librdmacm", "librdmacm.so.1", "librdmacm1",
              "programs with the RDMA CM do not start"},
      Library{"libibumad", "libibumad.so.3", "libibumad3",
              "ibstat, OpenSM and the like do not start"},
  };
  for (const Library& it : kOthers) {
    void* library = ::dlopen(it.soname, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      findings.push_back({it.check, Level::Warn, "not found", it.cost,
                          fmt::format("apt-get install {}", it.package)});
      continue;
    }
    findings.push_back({it.check, Level::Ok, file_of(library), {}, {}});
    ::dlclose(library);
  }
}

void check_runtime_dir(Findings& findings) {
  const Surroundings here = Surroundings::of_this_process();
  const std::string path = choose_runtime_dir(here);
  struct stat s {};
  const bool was_there = ::lstat(path.c_str(), &s) == 0;
  try {
    prepare_runtime_dir(path, here.uid);
    fabric_files(path, "default");
    findings.push_back({"runtime directory", Level::Ok, path, {}, {}});
  } catch (const CliError& error) {
    findings.push_back({"runtime directory", Level::Fail, first_line(error.what()),
                        "no fabric can be started",
                        "set SOFTIB_RUNTIME_DIR to a directory of yours (mode 0700)"});
  }
  if (!was_there) ::rmdir(path.c_str());
}

}  // namespace

void check_installation(Findings& findings) {
  check_system(findings);
  check_parts(findings);
  const int private_abi = check_verbs_library(findings);
  check_32_bit(findings);
  check_loads(findings, private_abi);
  check_other_libraries(findings);
  check_runtime_dir(findings);
}

}  // namespace ib::softib
