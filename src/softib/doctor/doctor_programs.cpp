// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "setup/cli_error.h"
#include "softib/doctor/doctor.h"
#include "softib/launch/program.h"
#include "softib/launch/socket_switch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace ib::softib {
namespace {

void check_adapters(Findings& findings) {
  std::vector<std::string> adapters;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/class/infiniband", error)) {
    adapters.push_back(entry.path().filename().string());
  }
  const char* preload = std::getenv("LD_PRELOAD");
  std::string value = "none";
  if (preload != nullptr &&
      std::string_view(preload).find("libsoftib_preload") != std::string_view::npos) {
    value = "hidden: this is a program of softib itself";
  } else if (!adapters.empty()) {
    value = fmt::format("{}; programs under softib see softib's HCAs instead",
                        fmt::join(adapters, ", "));
  } else if (std::filesystem::exists("/sys/class/infiniband", error)) {
    value = "none, but the kernel has RDMA; they do not disturb each other";
  }
  findings.push_back({"other adapters", Level::Ok, value, {}, {}});
}

bool is_there(const char* name) {
  try {
    find_program(name);
    return true;
  } catch (const CliError&) {
    return false;
  }
}

void check_tools(Findings& findings) {
  struct Tool {
    const char* program;
    const char* package;
    const char* use;
  };
  constexpr std::array kTools = {
      Tool{"ibv_devinfo", "ibverbs-utils", "show HCAs, try ping-pongs"},
      Tool{"ib_write_lat", "perftest", "measure latency and bandwidth"},
      Tool{"ucx_perftest", "ucx-utils", "measure UCX"},
  };
  for (const Tool& it : kTools) {
    if (is_there(it.program)) {
      findings.push_back({it.package, Level::Ok, fmt::format("there ({})", it.program), {}, {}});
      continue;
    }
    findings.push_back({it.package, Level::Warn, "not installed",
                        fmt::format("only a tool: to {}", it.use),
                        fmt::format("apt-get install {}", it.package)});
  }
}

void check_socket_switch(Findings& findings) {
  const std::string library = librdmacm_path();
  if (library.empty()) {
    findings.push_back({"socket switch", Level::Warn, "librdmacm is not installed",
                        "only `softib run --sockets=rsockets` needs it",
                        "apt-get install librdmacm1"});
    return;
  }
  const std::string preload = librspreload_path();
  findings.push_back(
      {"socket switch",
       Level::Ok,
       fmt::format("there, also over rsockets (of {}); {}", library,
                   preload.empty() ? "no librspreload" : "librspreload, not used: " + preload),
       {},
       {}});
}

}  // namespace

void check_programs(Findings& findings) {
  check_adapters(findings);
  check_tools(findings);
  check_socket_switch(findings);
}

}  // namespace ib::softib
