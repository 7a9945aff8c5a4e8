// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/pages/device_page.h"

#include <gtest/gtest.h>

#include <sstream>

namespace ib::softib {
namespace {

void expect_narrow(const std::string& page) {
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
}

const char* const kTree = R"({"tree":{"id":"ROOT\\SOFTIB\\0","state":"started","power":"D0",
  "driver":"softib_bus","children":[
   {"id":"SOFTIB\\HOST\\a-node-with-a-name-of-thirty-two","state":"started","power":"D0","children":[
    {"id":"SOFTIB\\V025346P0001v00000001\\0253460000000000","state":"started","power":"D3",
     "driver":"soft_hca","filters":["ib_bus","another_filter"],"open_files":[1234567,1234568,1234567],
     "hardware_ids":["IBA\\SID_0000000002139702","IBA\\SID_0000000002139703","IBA\\SID_00000000021397"],
     "children":[
      {"id":"IBA\\A_child_with_a_name_of_its_own\\0253460000000001-ffff-a-client-of-ours",
       "state":"failed","power":"D0","problem":"the driver said no, and it took very many words for that"}
     ]}]}]},
  "leaving":[{"id":"SOFTIB\\X","state":"surprise removed","power":"D0"}]})";

TEST(DevicePage, TheTreeFitsIntoATerminalAndNoIdIsCut) {
  for (const bool with_ids : {false, true}) {
    const std::string page = devices_page(Json::parse(kTree), with_ids);
    expect_narrow(page);
    for (const char* part :
         {"ROOT\\SOFTIB\\0 ", "a-node-with-a-name-of-thirty-two", "started, D3",
          "-ffff-a-client-of-ours\n", "soft_hca + ib_bus + another_filter", "1234567 (2 times)",
          "    SOFTIB\\V025346P0001v00000001\\0253460000000000 started, D3", "the driver said no",
          "Pulled out, still in use:\nSOFTIB\\X"}) {
      EXPECT_NE(page.find(part), std::string::npos) << part << " in\n" << page;
    }
  }
}

TEST(DevicePage, OfAnEmptyStateIsStillAPage) {
  EXPECT_FALSE(devices_page(Json::object(), true).empty());
}

TEST(DevicePage, DriversFitIntoATerminal) {
  const Json drivers = Json::parse(R"([
    {"name":"soft_hca","kind":"function","state":"loaded",
     "references":"4 devices, 1 dependent driver","ids":["SOFTIB\\HCA"]},
    {"name":"a_driver_with_quite_a_long_name","kind":"function","state":"unloaded",
     "references":"12 devices, 11 dependent drivers, 3 requests",
     "ids":["IBA\\SID_0000000002139702","IBA\\SID_0000000002139703","IBA\\SID_0000000002139704"]}])");
  const std::string page = drivers_page(drivers);
  expect_narrow(page);
  EXPECT_NE(page.find("IBA\\SID_0000000002139704"), std::string::npos) << page;
  EXPECT_NE(page.find("drivers, 3 requests"), std::string::npos) << page;
}

}  // namespace
}  // namespace ib::softib
