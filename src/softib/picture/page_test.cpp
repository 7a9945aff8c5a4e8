// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/picture/page.h"

#include "fabric/picture/preset_subnet_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace ib::softib {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string page_of_subnet(const fabric::ShownSubnet& subnet) {
  const fabric::Picture picture = make_picture(subnet);
  return page_of(picture, page_state(picture, subnet), {"fabric t", "abc123"});
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST(Page, ItRefersToNothingOutsideOfItself) {
  const std::string page = page_of_subnet(fabric::shown_preset("star:3"));
  for (const char* reference : {"http:", "https:", "src=", "href=", "url(", "@import", "file:"}) {
    EXPECT_THAT(page, Not(HasSubstr(reference)));
  }
}

TEST(Page, OnlyItsOwnScriptMayRun) {
  const std::string page = page_of_subnet(fabric::shown_preset("star:3"));
  EXPECT_THAT(page, HasSubstr("default-src 'none'; script-src 'nonce-abc123'; "
                              "style-src 'nonce-abc123'; connect-src 'none'"));
  EXPECT_EQ(count_of(page, "<script nonce=\"abc123\">"), 1u);
}

TEST(Page, HostileNamesAreNoMarkup) {
  const std::string hostile = "</script><script>alert(1)</script><img onerror=\"x\">\n\xff\u2028";
  fabric::ShownSubnet subnet = fabric::shown_preset("star:3");
  const std::size_t before = count_of(page_of_subnet(subnet), "<script");
  for (fabric::ShownElement& element : subnet.elements) {
    element.name = element.node = hostile;
    element.programs = {{hostile, 1}};
    element.ports[0].troubles = {{hostile, 1}};
    element.ports[0].rate = hostile;
  }
  const std::string page = page_of_subnet(subnet);
  EXPECT_EQ(count_of(page, "<script"), before);
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, Not(HasSubstr("\xff")));
  const std::size_t begin = page.find("id=\"state\">") + 11;
  const Json state = Json::parse(page.substr(begin, page.find("</script>", begin) - begin));
  EXPECT_THAT(state["elements"][0]["n"].get<std::string>(), HasSubstr("</script><script>alert(1)"));
}

TEST(Page, ItHasTheFactsOfEachElement) {
  fabric::ShownSubnet subnet = fabric::shown_preset("star:2");
  subnet.elements[0].programs = {{"rping", 12}};
  subnet.elements[0].ports[0].errors = 2;
  subnet.elements[0].ports[0].troubles = {{"symbol_errors", 2}};
  const Json element = page_state(make_picture(subnet), subnet)["elements"][0];
  EXPECT_EQ(element["k"], "adapter");
  EXPECT_EQ(element["pr"], Json::array({"rping (pid 12)"}));
  EXPECT_EQ(element["p"][0], Json::array({1, "active", 0, "4xEDR", 2, 1, 0, 0, "symbol errors 2"}));
}

}  // namespace
}  // namespace ib::softib
