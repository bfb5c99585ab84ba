"""The plugin names that are known without any configuration: Agno's toolkits, packaged plugins, and names alone.

Nothing is imported here: the tables are checked against the installed Agno and our own package by tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from pegboard.core.model.loadouts import PLUGIN_CATEGORIES, category_of
from pegboard.core.model.specs import RegisteredSpec
from pegboard.core.model.toolkits import SHARED_ONLY
from pegboard.core.model.tools import Frozen

_NAMES: Final = ("batchEdit", "mcpEcosystem", "parityDocs", "skillParity")
"""The names of seed 003 that are not all lower case."""

_ONLY_NAMED: Final = ("homeassistant",)

_PACKAGED: Final = {
    "diff": "pegboard.quickstart.text:compare_files",
    "git": "pegboard.quickstart.git",
    "search": "pegboard.quickstart.text:search_text",
}
"""Names of seed 003 for which no toolkit of Agno stands, and which packaged plugin, or which of its functions, does."""

_COUNTERPARTS: Final = {"file": "pegboard.quickstart.files"}
"""Toolkits of Agno for which a packaged plugin stands in where Agno is not installed."""

_GOOGLE: Final = "google-api-python-client google-auth-httplib2 google-auth-oauthlib"

# name, module below agno.tools (nothing for the same) and class, then the packages that it imports
_AGNO: Final = f"""
adanos :AdanosTools
agentql :AgentQLTools agentql
aimlapi models.aimlapi:AIMLAPITools openai
airflow :AirflowTools
anakin :AnakinTools httpx
antigravity :AntigravityTools httpx
api :CustomApiTools requests
apify :ApifyTools apify-client
arxiv :ArxivTools arxiv pypdf
atomic_mail :AtomicMailTools
aws_lambda :AWSLambdaTools boto3
aws_ses :AWSSESTool boto3
azure_openai models.azure_openai:AzureOpenAITools requests
baidusearch :BaiduSearchTools baidusearch pycountry
bitbucket :BitbucketTools
brandfetch :BrandfetchTools
bravesearch :BraveSearchTools brave-search
brightdata :BrightDataTools
browserbase :BrowserbaseTools browserbase playwright
calcom :CalComTools requests pytz
calculator :CalculatorTools
cartesia :CartesiaTools cartesia
chart :ChartTools
clickup :ClickUpTools requests
coding :CodingTools
confluence :ConfluenceTools atlassian-python-api
crawl4ai :Crawl4aiTools crawl4ai
csv csv_toolkit:CsvTools duckdb
dalle :DalleTools openai
daytona :DaytonaTools daytona
desi_vocal :DesiVocalTools
discord :DiscordTools
docker :DockerTools docker
docling :DoclingTools docling
duckdb :DuckDbTools duckdb
duckduckgo :DuckDuckGoTools ddgs
e2b :E2BTools e2b-code-interpreter
eleven_labs :ElevenLabsTools elevenlabs
email :EmailTools
evm :EvmTools web3
exa :ExaTools exa-py
fal :FalTools fal-client
file file.file:FileTools
file_generation file.generation:FileGenerationTools
finance finance.toolkit:FinanceTools yfinance
financial_datasets :FinancialDatasetsTools
firecrawl :FirecrawlTools firecrawl-py
gandr :GandrTools
gemini models.gemini:GeminiTools google-genai
giphy :GiphyTools
github :GithubTools pygithub
gitlab :GitlabTools python-gitlab httpx
gmail google.gmail:GmailTools {_GOOGLE}
google_bigquery google.bigquery:GoogleBigQueryTools google-cloud-bigquery
google_calendar google.calendar:GoogleCalendarTools {_GOOGLE}
google_drive google.drive:GoogleDriveTools {_GOOGLE}
google_maps google.maps:GoogleMapTools googlemaps google-maps-places
google_sheets google.sheets:GoogleSheetsTools {_GOOGLE}
google_slides google.slides:GoogleSlidesTools {_GOOGLE}
groq models.groq:GroqTools groq
hackernews :HackerNewsTools
jina :JinaReaderTools
jira :JiraTools jira
keenable :KeenableTools
linear :LinearTools
linkup :LinkupTools linkup-sdk
llms_txt :LLMsTxtTools
local_file_system :LocalFileSystemTools
lumalab :LumaLabTools lumaai
mem0 :Mem0Tools mem0ai
memory :MemoryTools sqlalchemy greenlet
minimax :MiniMaxTools
mlx_transcribe :MLXTranscribeTools mlx-whisper
models_labs :ModelsLabTools requests
morph models.morph:MorphTools openai
moviepy_video :MoviePyVideoTools moviepy ffmpeg
nano_banana :NanoBananaTools google-genai pillow
nebius models.nebius:NebiusTools openai
neo4j :Neo4jTools neo4j
newspaper :NewspaperTools newspaper3k lxml_html_clean
newspaper4k :Newspaper4kTools newspaper4k lxml_html_clean
notion :NotionTools notion-client
openai :OpenAITools openai
openbb :OpenBBTools openbb
opencv :OpenCVTools opencv-python
openrouteservice :OpenRouteServiceTools httpx
openweather :OpenWeatherTools requests
oxylabs :OxylabsTools oxylabs
pandas :PandasTools pandas
parallel :ParallelTools parallel-web
perplexity :PerplexitySearch httpx
plivo :PlivoTools plivo
postgres :PostgresTools psycopg[binary]
pubmed :PubmedTools
python :PythonTools
reasoning :ReasoningTools
reddit :RedditTools praw
redmine :RedmineTools python-redmine
redshift :RedshiftTools redshift-connector
replicate :ReplicateTools replicate
resend :ResendTools resend
salesforce :SalesforceTools simple-salesforce
scavio :ScavioTools scavio
scheduler :SchedulerTools sqlalchemy greenlet croniter pytz
scrapegraph :ScrapeGraphTools scrapegraph-py
searchapi :SearchApiTools
searxng :Searxng
seltz :SeltzTools seltz
serpapi :SerpApiTools google-search-results
serper :SerperTools
serply :SerplyTools
shell :ShellTools
shopify :ShopifyTools
sixtydb :SixtyDBTools
slack :SlackTools slack-sdk
sleep :SleepTools
smallest :SmallestTools
sofya :SofyaTools
spider :SpiderTools spider-client
spotify :SpotifyTools
sql :SQLTools sqlalchemy
superserve :SuperserveTools superserve
tavily :TavilyTools tavily-python
telegram :TelegramTools pyTelegramBotAPI
todoist :TodoistTools todoist-api-python
trafilatura :TrafilaturaTools trafilatura
trello :TrelloTools py-trello
twelvelabs :TwelveLabsTools twelvelabs
twilio :TwilioTools twilio
unsplash :UnsplashTools
valyu :ValyuTools valyu
visualization :VisualizationTools matplotlib
wavespeed :WaveSpeedTools wavespeed
webbrowser :WebBrowserTools
webex :WebexTools webexpythonsdk
websearch :WebSearchTools ddgs
website :WebsiteTools beautifulsoup4
webtools :WebTools
whatsapp :WhatsAppTools
wikipedia :WikipediaTools wikipedia
workspace :Workspace
x :XTools tweepy
yfinance :YFinanceTools yfinance
youcom :YouTools
youtube :YouTubeTools youtube-transcript-api
zendesk :ZendeskTools requests
zep :ZepTools zep-cloud
zoom :ZoomTools
"""


@cache
def registered() -> Mapping[str, RegisteredSpec]:
    """Return every plugin that is known by name; packages may take these names over.

    Toolkits of Agno have the loader ``agno:module:Class``, packaged plugins ``packaged:module`` or
    ``packaged:module:function``, names that only a package can bring ``missing:``; ``packages`` are what the
    plugin imports besides.
    """
    found = {spec.name: spec for spec in map(_agno, _AGNO.strip().splitlines())}
    spelled = {name.casefold(): name for name in _NAMES}
    for fold in (*PLUGIN_CATEGORIES, *_ONLY_NAMED):
        name = spelled.get(fold, fold)
        if name not in found:
            loader = f"packaged:{_PACKAGED[name]}" if name in _PACKAGED else "missing:"
            found[name] = RegisteredSpec(
                name=name, loader=loader, category=category_of(name), shared_only=name in SHARED_ONLY
            )
    return Frozen(found)


_ABOUT: Final[Mapping[str, str]] = {
    "scheduler": "Schedules, which are stored here and run only where the host runs them."
}
_POLICY: Final[Mapping[str, Mapping[str, str]]] = {
    "scheduler": dict.fromkeys(
        ("create_schedule", "enable_schedule", "trigger_schedule"),
        "A schedule is only stored: it runs where the host of this agent runs schedules, and nowhere else.",
    )
}


def _agno(line: str) -> RegisteredSpec:
    name, target, *packages = line.split()
    module, _, toolkit = target.rpartition(":")
    return RegisteredSpec(
        name=name,
        loader=f"agno:agno.tools.{module or name}:{toolkit}",
        category=category_of(name),
        description=_ABOUT.get(name, ""),
        policy=Frozen(_POLICY.get(name, {})),
        packages=tuple(packages),
        shared_only=name in SHARED_ONLY,
        counterpart=_COUNTERPARTS.get(name, ""),
    )
