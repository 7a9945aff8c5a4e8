// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "linux/net/namespaces.h"

#include "linux/net/in_namespace_test.h"
#include "linux/net/netlink.h"
#include "linux/net/tap.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>

#include <array>
#include <cerrno>
#include <csignal>

namespace ib::os::net {
namespace {

TEST(Namespaces, LookingForWhatIsMissingChangesNothing) {
  const NamespaceId before = namespace_id(own_network_namespace().get());
  (void)find_missing_facility();
  EXPECT_EQ(namespace_id(own_network_namespace().get()), before);
}

TEST(Namespaces, ANewOneHasItsLoopbackInterfaceAndNoOther) {
  IB_NEED_NETWORK_NAMESPACES();
  const NamespaceId before = namespace_id(own_network_namespace().get());
  EXPECT_EQ(in_network_namespace([&]() -> std::string {
              if (namespace_id(own_network_namespace().get()) == before) return "the same one";
              if (index_of("lo") == 0) return "no lo";
              return index_of("eth0") == 0 ? "" : "eth0";
            }),
            "");
}

TEST(Namespaces, ADescriptorIsRecognised) {
  EXPECT_TRUE(is_network_namespace(own_network_namespace().get()));
  EXPECT_FALSE(is_network_namespace(own_user_namespace().get()));
  EXPECT_FALSE(is_network_namespace(STDIN_FILENO));
  EXPECT_FALSE(is_network_namespace(-1));
  EXPECT_EQ(namespace_id(-1).inode, 0u);
}

TEST(Namespaces, TheUserNamespaceOfTheProcessCountsAsEntered) {
  const auto own = own_user_namespace();
  EXPECT_FALSE(join_user_namespace(own.get()));
}

TEST(Namespaces, AProcessIsFoundInItsNetworkNamespaceUntilItEnds) {
  IB_NEED_NETWORK_NAMESPACES();
  EXPECT_EQ(in_network_namespace([]() -> std::string {
              const NamespaceId here = namespace_id(own_network_namespace().get());
              const std::array<pid_t, 1> self{::getpid()};
              if (find_process_in(here, self)) return "a process before it is there";
              const pid_t other = ::fork();
              if (other == 0) {
                ::prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (;;) ::pause();
              }
              if (find_process_in(here, self) != other) return "the process is not found";
              ::kill(other, SIGKILL);
              ::waitpid(other, nullptr, 0);
              return find_process_in(here, self) ? "found after its end" : "";
            }),
            "");
}

TEST(Namespaces, CapabilitiesAreKeptForProgramsOfAnyUser) {
  IB_NEED_NETWORK_NAMESPACES();
  EXPECT_EQ(in_network_namespace([]() -> std::string {
              if (const Refusal refusal = keep_capabilities()) return explain(refusal);
              constexpr int kNetAdmin = 12;
              const int kept = ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, kNetAdmin, 0, 0);
              return kept == 1 ? "" : "not ambient";
            }),
            "");
}

TEST(Namespaces, FilesGiveNoRights) {
  IB_NEED_NETWORK_NAMESPACES();
  EXPECT_EQ(in_network_namespace([]() -> std::string {
              if (!ignore_rights_of_files()) return "";  // Linux before 5.12
              struct statvfs root {};
              return ::statvfs("/", &root) == 0 && (root.f_flag & ST_NOSUID) != 0 ? "" : "suid";
            }),
            "");
}

TEST(Namespaces, SysShowsTheInterfacesThatAreThere) {
  IB_NEED_NETWORK_NAMESPACES();
  EXPECT_EQ(in_network_namespace([]() -> std::string {
              std::string reason;
              const auto tap = Tap::create({.name = "softib-test"}, reason);
              if (!tap) return reason;
              const auto is_there = [](const char* path) { return ::access(path, F_OK) == 0; };
              // A container that hides parts of /sys.
              if (!show_own_interfaces())
                return is_there("/sys/class/net/lo") ? "" : "/sys is gone";
              if (!is_there("/sys/class/net/softib-test/mtu")) return "the interface is missing";
              if (!is_there("/sys/devices/virtual/net/softib-test")) return "its device is missing";
              return is_there("/sys/kernel") ? "" : "the rest of /sys is gone";
            }),
            "");
}

TEST(Refusals, EachStepHasWordsAndARemedy) {
  EXPECT_FALSE(Refusal{});
  EXPECT_EQ(status_of({}), Status::Ok);
  for (const Step step :
       {Step::UserNamespace, Step::Mapping, Step::NetworkNamespace, Step::TunDevice, Step::Tap,
        Step::Interface, Step::Join, Step::Capabilities}) {
    for (const int error : {EPERM, EACCES, ENOSPC, EINVAL, ENOENT, ENOSYS, EMFILE, EBUSY}) {
      EXPECT_FALSE(describe({step, error}).empty());
      EXPECT_FALSE(remedy({step, error}).empty());
      EXPECT_NE(status_of({step, error}), Status::Ok);
    }
  }
  EXPECT_NE(explain({Step::TunDevice, ENOENT}).find("/dev/net/tun"), std::string::npos);
}

}  // namespace
}  // namespace ib::os::net
