// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "fabric/picture/escape.h"

#include <gtest/gtest.h>

#include <string>

namespace ib::fabric {
namespace {

const std::string kReplaced = "\xef\xbf\xbd";

TEST(PictureTexts, Utf8IsKeptInOneLine) {
  EXPECT_EQ(clean_text("node \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"),
            "node \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
  EXPECT_EQ(clean_text("a\nb\r\tc"), "a" + kReplaced + "b" + kReplaced + kReplaced + "c");
}

TEST(PictureTexts, WhatIsNoUtf8IsReplacedByteByByte) {
  EXPECT_EQ(clean_text("a\xff\xc3"), "a" + kReplaced + kReplaced);
  EXPECT_EQ(clean_text("\xc0\xaf"), kReplaced + kReplaced) << "two bytes for a slash";
  EXPECT_EQ(clean_text("\xed\xa0\x80"), kReplaced) << "half of a pair of UTF-16";
  EXPECT_EQ(clean_text("\xf4\x90\x80\x80"), kReplaced + kReplaced + kReplaced + kReplaced);
  EXPECT_EQ(clean_text(std::string("a\0b", 3)), "a" + kReplaced + "b");
}

TEST(PictureTexts, MarksOfDirectionAndEscapesOfTerminalsAreReplaced) {
  EXPECT_EQ(clean_text("\x1b[31mred"), kReplaced + "[31mred");
  EXPECT_EQ(clean_text("a\xe2\x80\xae"
                       "b"),
            "a" + kReplaced + "b")
      << "right-to-left override";
  EXPECT_EQ(clean_text("a\xc2\x9b"
                       "b"),
            "a" + kReplaced + "b")
      << "CSI in one character";
  EXPECT_EQ(clean_text("a\xef\xbf\xbf"), "a" + kReplaced) << "no character of XML";
}

TEST(PictureTexts, LongOnesAreCutBetweenCharacters) {
  EXPECT_EQ(clean_text("\xc3\xa4\xc3\xb6\xc3\xbc", 2), "\xc3\xa4\xc3\xb6...");
  EXPECT_EQ(clean_text("abc", 3), "abc");
  EXPECT_EQ(character_count("\xc3\xa4"
                            "b"),
            2u);
}

TEST(PictureTexts, MarkupIsText) {
  EXPECT_EQ(xml_text("<script>\"&'</script>"), "&lt;script&gt;&quot;&amp;&#39;&lt;/script&gt;");
  EXPECT_EQ(dot_text("\"];\\N &lt;"), "\\\"];\\\\N &amp;lt;");
  EXPECT_EQ(json_in_html("[\"</script><!--&\"]"), "[\"\\u003c/script\\u003e\\u003c!--\\u0026\"]");
}

}  // namespace
}  // namespace ib::fabric
