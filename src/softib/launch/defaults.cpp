// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/launch/defaults.h"

#include "softib/launch/environment_edit.h"
#include "softib/launch/openmpi.h"
#include "verbs/virtual_files.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <fstream>
#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace ib::softib {
namespace {

// The registry of the machine, if it has an entry of the user's for an HCA of softib. The one that
// comes with libdapl2 has entries for other adapters only.
std::string registry_of_user(const Environment&) {
  constexpr const char* kFile = "/etc/dat.conf";
  std::ifstream file(kFile);
  for (std::string line; std::getline(file, line);) {
    const bool is_entry = !line.empty() && line[0] != '#';
    if (is_entry && line.find("softib") != std::string::npos) return kFile;
  }
  return {};
}

// A name as an argument of a template.
template <std::size_t kSize>
struct Name {
  char text[kSize]{};
  consteval Name(const char (&from)[kSize]) { std::copy_n(from, kSize, text); }
};

// A parameter of OpenMPI's, by its variable or in the user's file.
template <Name kParameter>
constexpr Default openmpi(const char* variable, const char* value, const char* reason) {
  return {
      variable,  value,  DefaultKind::Variable,
      "OpenMPI", reason, [](const Environment& it) { return mca_file_with(it, kParameter.text); }};
}

constexpr std::array kDefaults = {
    // It only matters that its allocator comes before others, and the preload library has none.
    Default{"ASAN_OPTIONS", "verify_asan_link_order=0", DefaultKind::Option, "AddressSanitizer",
            "insists on being the first library, which softib's preload library is"},
    // A thread that spins for a lock whose holder has no processor waits for half a minute at times
    // (docs/testing.md); with a mutex the holder runs.
    Default{"UCX_USE_MT_MUTEX", "y", DefaultKind::Variable, "UCX, MPI",
            "threads that share a worker wait for its lock without spinning"},
    Default{"DAT_OVERRIDE", verbs::kDatConf.data(), DefaultKind::Variable, "uDAPL",
            "a registry with the node's HCAs and addresses (ofa-v2-ib0, ofa-v2-softib0-1 ...)",
            registry_of_user},
    // Other hosts, and programs that see no HCA, are still reached by TCP.
    Default{"UCX_TLS", "^sm", DefaultKind::Variable, "UCX, MPI",
            "processes of one machine would use its shared memory, not their HCAs"},
    // By UCX's own estimate its other sends over rc_verbs of softib go without those copies from
    // about that size on. A user's UCX_RNDV_THRESH takes precedence in UCX.
    Default{"UCX_RNDV_SEND_NBR_THRESH", "24k", DefaultKind::Variable, "UCX, OpenMPI",
            "sends of up to 256 KiB would be copied through small buffers, three times"},
    // Debian's configuration excludes all that uses an HCA.
    openmpi<"pml">("OMPI_MCA_pml", "ucx", "Debian's settings exclude UCX"),
    openmpi<"pml_ucx_tls">("OMPI_MCA_pml_ucx_tls", "any",
                           "it takes UCX only if its transports are of a list"),
    openmpi<"pml_ucx_devices">("OMPI_MCA_pml_ucx_devices", "any",
                               "it takes UCX only with HCAs whose names begin with mlx"),
    openmpi<"osc">("OMPI_MCA_osc", "ucx,sm", "one-sided: Debian's settings exclude UCX"),
    openmpi<"osc_ucx_priority">("OMPI_MCA_osc_ucx_priority", "200",
                                "windows of one machine would be its shared memory"),
    openmpi<"rmaps_base_oversubscribe">("OMPI_MCA_rmaps_base_oversubscribe", "1",
                                        "it refuses more ranks than this machine has cores"),
    openmpi<"btl_openib_allow_ib">("OMPI_MCA_btl_openib_allow_ib", "1",
                                   "openib leaves InfiniBand ports to UCX"),
    // UCX, which the windows use, patches libc's munmap() over OpenMPI's own patch: openib's cache
    // of registrations would keep buffers that have been freed.
    openmpi<"mpi_leave_pinned">("OMPI_MCA_mpi_leave_pinned", "0",
                                "openib would use registrations of buffers that are freed"),
    openmpi<"btl_openib_warn_no_device_params_found">(
        "OMPI_MCA_btl_openib_warn_no_device_params_found", "0",
        "openib warns about HCAs that are not in its list"),
    // A byte of a stream is copied three times.
    Default{"GLIBC_TUNABLES", "glibc.cpu.x86_rep_movsb_threshold=1073741824", DefaultKind::Option,
            "glibc", "with --sockets: its memcpy() is slow on this processor at some addresses",
            nullptr,
            [](const Environment& it) {
              return find(it, "SOFTIB_SOCKETS") != nullptr && copies_unevenly();
            }},
};

bool applies(const Default& it, const Environment& environment) {
  return it.applies == nullptr || it.applies(environment);
}

std::string_view option_of(std::string_view entry) {
  return entry.substr(0, entry.find('='));
}

// The entry of the list that sets the option of `value`; empty if there is none.
std::string_view option_in(std::string_view list, std::string_view value) {
  const std::string_view option = option_of(value);
  std::string_view found;
  kept(list, ":", [&](std::string_view entry) {
    if (option_of(entry) == option) found = entry;
    return false;
  });
  return found;
}

// The user's own value of a setting or the file that has it; empty if softib's counts.
std::string choice_of_user(const Environment& environment, const Default& it) {
  if (const std::string* now = find(environment, it.variable)) {
    const bool whole = it.kind == DefaultKind::Variable;
    const std::string_view entry = whole ? *now : option_in(*now, it.value);
    const bool is_set = whole || !entry.empty();
    if (is_set && entry != it.value) return entry.empty() ? "(empty)" : std::string(entry);
    if (is_set) return {};
  }
  return it.file_of_user == nullptr ? std::string() : it.file_of_user(environment);
}

}  // namespace

bool copies_unevenly() {
#if defined(__x86_64__)
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  if (__get_cpuid(0, &eax, &ebx, &ecx, &edx) == 0 || ebx != signature_AMD_ebx) return false;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) return false;
  constexpr unsigned kZen3 = 0x19;
  return (eax >> 8 & 0xf) + (eax >> 20 & 0xff) >= kZen3;
#else
  return false;
#endif
}

std::span<const Default> run_defaults() {
  return kDefaults;
}

void add_defaults(Environment& environment) {
  for (const Default& it : kDefaults) {
    if (!applies(it, environment) || !choice_of_user(environment, it).empty()) continue;
    const std::string* now = find(environment, it.variable);
    if (it.kind == DefaultKind::Variable || now == nullptr) {
      set(environment, it.variable, it.value);
    } else if (option_in(*now, it.value).empty()) {
      set(environment, it.variable, before(it.value, *now));
    }
  }
}

void remove_defaults(Environment& environment) {
  for (const Default& it : kDefaults) {
    const std::string* now = find(environment, it.variable);
    if (now == nullptr) continue;
    if (it.kind == DefaultKind::Option) {
      const std::string rest =
          kept(*now, ":", [&](std::string_view entry) { return entry != it.value; });
      set(environment, it.variable, rest);
      if (rest.empty()) unset(environment, it.variable);
    } else if (*now == it.value) {
      unset(environment, it.variable);
    }
  }
}

std::vector<SuppliedSetting> supplied_settings(const Environment& environment) {
  std::vector<SuppliedSetting> settings;
  for (const Default& it : kDefaults) {
    if (applies(it, environment)) settings.push_back({&it, choice_of_user(environment, it)});
  }
  return settings;
}

}  // namespace ib::softib
