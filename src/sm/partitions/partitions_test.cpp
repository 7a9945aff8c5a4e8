// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "sm/partitions/partitions.h"

#include "sm/partitions/pkeys.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace ib::sm {
namespace {

PartitionList parsed(std::string_view text) {
  TextError error;
  const auto list = parse_partitions(text, error);
  EXPECT_TRUE(list) << error.line << ":" << error.column << ": " << error.text;
  return list ? *list : PartitionList{};
}
std::string error_of(std::string_view text) {
  TextError error;
  const auto list = parse_partitions(text, error);
  if (list) return "no error";
  return fmt::format("{}:{}: {}", error.line, error.column, error.text);
}

// One adapter port with this GUID and P_Key table beside the own one.
struct Ports {
  Subnet subnet;
  std::uint32_t own, other;
  Ports() {
    own = add(1);
    other = add(2);
    subnet.set_own_port(own);
    subnet.connect(own, other);
  }
  std::uint32_t add(std::uint64_t guid) {
    mad::NodeInfo info;
    info.node_type = 1;
    info.num_ports = 1;
    info.node_guid = guid << 8;
    const std::uint32_t port = subnet.node(subnet.add(info)).first_port;
    subnet.port(port).guid = guid;
    subnet.port(port).is_known = true;
    subnet.port(port).pkeys = {0xffff, 0, 0, 0};
    return port;
  }
  std::vector<std::uint16_t> table(std::string_view text, std::uint32_t port) {
    return Pkeys(parsed(text)).table_of(subnet, subnet.port(port), problems);
  }
  Problems problems;
};

using List = std::vector<std::uint16_t>;

TEST(Partitions, TheSyntaxOfOpenSmIsRead) {
  const PartitionList list = parsed(
      "# those of the manual page\n"
      "Default=0x7fff, ipoib : ALL, SELF=full ;\n"
      "storage=0x8002,indx0, ipoib, rate=7, mtu=5, sl=2, scope=5, defmember=full :\n"
      "  0x0002c90300000001, 0x2=limited, ALL_CAS=both\n"
      "  mgid=ff12:401b::16,sl=1,Q_Key=0x0b1b # of IGMP\n"
      "  mgid=ff12:401b::1, SELF;\n"
      "=0x3 : ALL_SWITCHES=full, ALL_ROUTERS;\n"
      "named : ;\n");
  ASSERT_EQ(list.all.size(), 4u);
  const Partition& storage = list.all[1];
  EXPECT_EQ(storage.name, "storage");
  EXPECT_EQ(storage.pkey, 2);
  EXPECT_TRUE(storage.is_first);
  EXPECT_TRUE(storage.has_ipoib);
  EXPECT_EQ(storage.flags.mtu, 5);
  EXPECT_EQ(storage.flags.scope, 5);
  ASSERT_EQ(storage.members.size(), 4u);
  EXPECT_EQ(storage.members[0],
            (PartitionMember{MemberKind::Port, 0x0002c90300000001, Membership::Full}));
  EXPECT_EQ(storage.members[1], (PartitionMember{MemberKind::Port, 2, Membership::Limited}));
  EXPECT_EQ(storage.members[2], (PartitionMember{MemberKind::AllAdapters, 0, Membership::Both}));
  EXPECT_EQ(storage.members[3], (PartitionMember{MemberKind::Self, 0, Membership::Full}));
  ASSERT_EQ(storage.groups.size(), 2u);
  EXPECT_EQ(storage.groups[0].mgid, "ff12:401b::16");
  EXPECT_EQ(storage.groups[0].flags.sl, 1);
  EXPECT_EQ(storage.groups[0].flags.q_key, 0x0b1b);
  EXPECT_EQ(list.all[2].pkey, 3);
  EXPECT_EQ(list.all[3].pkey, 1);
}

TEST(Partitions, ErrorsSayWhereAndWhatWasExpected) {
  EXPECT_EQ(error_of("Default=0x7fff : ALL=full"),
            "1:26: the end of the file where ',' and another member, or ';' was expected");
  EXPECT_EQ(error_of("a=0x12345 : ALL;"),
            "1:3: '0x12345' where a number from 0 to 0xffff for the P_Key was expected");
  EXPECT_EQ(error_of("a=1 :\n  ALL=half;"), "2:7: 'half' where full, limited or both was expected");
  EXPECT_EQ(error_of("a=1, ipiob : ALL;"),
            "1:6: 'ipiob' where a flag (ipoib, indx0, defmember, rate, mtu, sl, scope, Q_Key, "
            "tclass or FlowLabel) was expected");
  EXPECT_EQ(error_of("a=1 : everybody;"),
            "1:7: 'everybody' where a member (the GUID of a port, as 0x0002c90300000001, or ALL, "
            "ALL_CAS, ALL_SWITCHES, ALL_ROUTERS or SELF) or mgid was expected");
  EXPECT_EQ(error_of("a=0 : ALL;"), "1:2: '=' where '=' and a P_Key other than 0 was expected");
  EXPECT_EQ(error_of("a=1 ALL;"),
            "1:5: 'ALL' where ':' before the members of the partition was expected");
  EXPECT_EQ(error_of("a=1 : mgid=fe80::1;"),
            "1:12: 'fe80::1' where a multicast GID, as ff12:401b::16 was expected");
}

TEST(Partitions, NoTextBringsItToAnEndThatIsNone) {
  const std::string_view text =
      "a=0x8002,indx0,ipoib,mtu=5 : 0x1=full, ALL mgid=ff12::1,sl=1, SELF; # end\n";
  for (std::size_t i = 0; i <= text.size(); ++i) {
    for (const std::string_view put : {"", ";", "=", ",", ":", "#", "mgid=", "0x", "\n"}) {
      TextError error;
      (void)parse_partitions(std::string(text.substr(0, i)) + std::string(put), error);
      (void)parse_partitions(std::string(text.substr(i)) + std::string(put), error);
    }
  }
}

TEST(Partitions, EverybodyIsAFullMemberWithoutAFile) {
  Ports ports;
  const Pkeys pkeys(PartitionList::everybody());
  EXPECT_FALSE(pkeys.separates());
  EXPECT_EQ(pkeys.of(ports.subnet, ports.subnet.port(ports.other)), List{0xffff});
}

TEST(Partitions, AFileWithoutTheDefaultOneLeavesThereLimitedMembers) {
  Ports ports;
  EXPECT_EQ(ports.table("a=2 : ALL=full;", ports.own), (List{0xffff, 0x8002, 0, 0}));
  EXPECT_EQ(ports.table("a=2 : ALL=full;", ports.other), (List{0x7fff, 0x8002, 0, 0}));
}

TEST(Partitions, KeysKeepTheirPlaces) {
  Ports ports;
  ports.subnet.port(ports.other).pkeys = {0xffff, 0x8005, 0x8002, 0};
  const std::string text = "Default=0x7fff : ALL=full; a=2 : 0x2=full; b=3 : 0x2;";
  EXPECT_EQ(ports.table(text, ports.other), (List{0xffff, 3, 0x8002, 0}));
}

TEST(Partitions, TheFirstKeyMovesToIndexZero) {
  Ports ports;
  const std::string text = "Default=0x7fff : ALL=full; a=2, indx0 : 0x2=full;";
  EXPECT_EQ(ports.table(text, ports.other), (List{0x8002, 0xffff, 0, 0}));
}

TEST(Partitions, ATableThatIsTooShortIsReported) {
  Ports ports;
  ports.table("Default=0x7fff:ALL=full; a=2:ALL; b=3:ALL; c=4:ALL; d=5:ALL;", ports.other);
  EXPECT_TRUE(ports.problems.has(ProblemKind::Partitions));
}

}  // namespace
}  // namespace ib::sm
